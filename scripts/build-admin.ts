/**
 * `npm run build:admin`: builds the admin page into `dist/admin-page`, unless it was built from the same sources. It runs after `npm ci` (`prepare`),
 * because a gateway that runs from the sources serves the built page, too.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'vite';

const root = resolve(import.meta.dirname, '..');
const dist = join(root, 'dist');

export async function buildAdminPage(): Promise<void> {
  const folder = join(dist, 'admin-page');
  const note = join(folder, 'built-from.txt');
  const sources = fingerprint();
  if (readIfThere(note) === sources) return;
  mkdirSync(dist, { recursive: true });
  // Built beside its place, because a gateway or another test may be serving the old page.
  const built = mkdtempSync(join(dist, '.admin-'));
  try {
    await build({ configFile: join(root, 'admin/vite.config.ts'), logLevel: 'warn', build: { outDir: built } });
    writeFileSync(join(built, 'built-from.txt'), sources);
    rmSync(folder, { recursive: true, force: true });
    chmodSync(built, 0o755); // a temporary folder is its owner's alone
    try {
      renameSync(built, folder);
    } catch (error) {
      if (readIfThere(note) !== sources) throw error; // otherwise another process has built it meanwhile
    }
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
}

function readIfThere(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** A hash of all that the page is built from. */
function fingerprint(): string {
  const sources = readdirSync(join(root, 'admin'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  const hash = createHash('sha256');
  for (const path of [...sources, join(root, 'package-lock.json')])
    hash.update(path.slice(root.length)).update(readFileSync(path));
  return hash.digest('hex');
}

if (import.meta.main) await buildAdminPage();
