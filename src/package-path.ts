import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RefoldError } from './errors.ts';

/**
 * A file or a folder of the package, such as `migrations`. It is next to `src/` in the repository and next to `dist/` in the package.
 *
 * @throws RefoldError `INVALID_CONFIG` if it is missing, as beside a bundle
 */
export function packagePath(name: string): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, name);
    if (existsSync(candidate) && existsSync(join(folder, 'package.json'))) return candidate;
  }
  throw new RefoldError(
    'INVALID_CONFIG',
    `Refold's '${name}' is missing beside its code. Keep it with the package when bundling.`,
  );
}
