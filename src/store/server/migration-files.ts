import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RefoldError } from '../../errors.ts';

/** A numbered file of the folder `migrations`. */
export interface MigrationFile {
  /** Such as `0001_event_log`. */
  readonly name: string;
  readonly text: string;
  /** Whether processes of older code can't run after it: the file has the line `-- breaking`. */
  readonly breaking: boolean;
}

/** The migrations of a folder, in order. */
export function readMigrations(folder: string = migrationsFolder()): MigrationFile[] {
  return readdirSync(folder)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      return { name: file.slice(0, -'.sql'.length), text, breaking: /^-- breaking$/m.test(text) };
    });
}

/** `migrations/` is next to `src/` in the repository and next to `dist/` in the package. */
function migrationsFolder(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, 'migrations');
    if (existsSync(candidate) && existsSync(join(folder, 'package.json'))) return candidate;
  }
  throw new RefoldError(
    'INVALID_CONFIG',
    "Refold's folder 'migrations' is missing beside its code. Keep it with the package when bundling.",
  );
}
