import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packagePath } from '../../package-path.ts';

/** A numbered file of the folder `migrations`. */
export interface MigrationFile {
  /** Such as `0001_event_log`. */
  readonly name: string;
  readonly text: string;
  /** Whether processes of older code can't run after it: the file has the line `-- breaking`. */
  readonly breaking: boolean;
}

/** The migrations of a folder, in order. */
export function readMigrations(folder: string = packagePath('migrations')): MigrationFile[] {
  return readdirSync(folder)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      return { name: file.slice(0, -'.sql'.length), text, breaking: /^-- breaking$/m.test(text) };
    });
}
