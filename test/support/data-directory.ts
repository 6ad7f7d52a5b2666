import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface DataDirectoryOptions {
  /** The program `initdb` of the server's version, which the account can run. */
  readonly initdb: string;
  /** The program that it is, or is a copy of. */
  readonly original: string;
  /** The account that the server runs as; that of this process if absent. */
  readonly uid?: number;
  readonly gid?: number;
  /** An existing folder of that account. */
  readonly parent: string;
}

const stored = join(import.meta.dirname, '../../.refold/test-servers');

/**
 * Makes the files of an empty server, in `data`: a copy of what `initdb` made when it first ran, because a copy takes a tenth of its time. So all
 * servers of a version have one system identifier, as a server and its restored backup have.
 */
export function createDataDirectory({ initdb, original, parent, ...account }: DataDirectoryOptions): void {
  const version = execFileSync(initdb, ['--version'], { ...account, encoding: 'utf8', stdio: 'pipe' }).trim();
  const key = [realpathSync(original), version, account.uid, ...settings].join('\n');
  const master = join(stored, createHash('sha256').update(key).digest('hex').slice(0, 16));
  if (!existsSync(master)) initialise(master, { initdb, original, parent, ...account });
  execFileSync('cp', ['-a', master, join(parent, 'data')], { stdio: 'pipe' });
}

const settings = ['--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync'];

function initialise(master: string, { initdb, original: _, parent, ...account }: DataDirectoryOptions): void {
  const made = join(parent, 'made');
  execFileSync(initdb, [`--pgdata=${made}`, ...settings], { ...account, stdio: 'pipe' });
  mkdirSync(stored, { recursive: true });
  const own = mkdtempSync(join(stored, 'new-'));
  execFileSync('cp', ['-a', made, join(own, 'data')], { stdio: 'pipe' });
  rmSync(made, { recursive: true });
  try {
    renameSync(join(own, 'data'), master);
  } catch (error) {
    // Another process was quicker.
    if (!existsSync(master)) throw error;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
