import { execFileSync, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { embeddedOwnerLockKey } from '../server/lock-keys.ts';
import { type Cluster, runAs, stopParameters } from './embedded-binaries.ts';

/** A running server, read from its data directory. */
export interface RunningServer {
  readonly pid: number;
  readonly port: number;
}

/** This process's share in a server. The server runs while any process has one. */
export interface ServerShare {
  readonly client: pg.Client;
  /** Releases the share. The last one stops the server. */
  leave(): Promise<void>;
}

/**
 * Joins a running server: each process that uses it holds a shared advisory lock in it. Unlike a process id in a file, such a lock cannot
 * outlive its holder. Undefined if the server is starting or stopping.
 */
export async function joinServer(cluster: Cluster, { port }: RunningServer): Promise<ServerShare | undefined> {
  const client = clientOf(cluster.password, port, process.pid);
  try {
    await client.connect();
    const { rows } = await client.query<{ joined: boolean }>('select pg_try_advisory_lock_shared($1) as joined', [
      embeddedOwnerLockKey,
    ]);
    if (rows[0]?.joined) {
      const onExit = () => leaveLater(cluster.dataDir);
      process.once('exit', onExit);
      return {
        client,
        async leave() {
          process.off('exit', onExit);
          await client.query('select pg_advisory_unlock_shared($1)', [embeddedOwnerLockKey]);
          await stopIfUnused(cluster, client);
          await client.end();
        },
      };
    }
  } catch {
    // Treated like a missing server: the caller checks again.
  }
  await client.end().catch(() => {});
  return undefined;
}

/** Stops the server unless another process uses it. Returns whether it did. The lock prevents others from joining in the meantime. */
export async function stopIfUnused(cluster: Cluster, client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ unused: boolean }>('select pg_try_advisory_lock($1) as unused', [
    embeddedOwnerLockKey,
  ]);
  if (!rows[0]?.unused) return false;
  await runAs(cluster.account, cluster.binaries.pg_ctl, stopParameters(cluster.dataDir, '-w'));
  return true;
}

/** For a process that ends without releasing the server (an exit or an uncaught error): starts another process that does. */
function leaveLater(dataDir: string): void {
  const program = join(import.meta.dirname, `embedded-leave${import.meta.filename.slice(-3)}`);
  spawn(process.execPath, [program, dataDir, String(process.pid)], { detached: true, stdio: 'ignore' }).unref();
}

/** Whether a process is still connected as a user of the server. */
export async function isUser(client: pg.Client, pid: number): Promise<boolean> {
  const { rows } = await client.query('select from pg_stat_activity where application_name = $1', [userName(pid)]);
  return rows.length > 0;
}

export async function usersOf(client: pg.Client): Promise<readonly number[]> {
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name
     from pg_stat_activity
     where starts_with(application_name, 'refold-owner ')
       and pid <> pg_backend_pid()`,
  );
  return rows.map(({ name }) => Number(name.slice('refold-owner '.length)));
}

/** A connection that does not hold the shared lock yet. */
export function clientOf(password: string, port: number, pid?: number): pg.Client {
  const connection = { host: '127.0.0.1', port, user: 'postgres', password, database: 'postgres' };
  const client = new pg.Client({
    ...connection,
    application_name: pid === undefined ? 'refold-visitor' : userName(pid),
  });
  client.on('error', () => {}); // it ends with the server
  return client;
}

const userName = (pid: number) => `refold-owner ${pid}`;

const pidFile = (dataDir: string) => join(dataDir, 'postmaster.pid');

/** The server that runs in a data directory; undefined if there is none. */
export async function runningServer(dataDir: string): Promise<RunningServer | undefined> {
  const text = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // Documented order: process id, data directory, start time, port, …
  const [pid, , , port] = text.split('\n').map(Number);
  if (!pid) return undefined; // the file is being written
  if (isPostgres(pid)) return { pid, port: port ?? 0 };
  // After a restart of the machine, another process may have this id. PostgreSQL would refuse to start.
  const now = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (now === text) await rm(pidFile(dataDir), { force: true });
  return undefined;
}

function isPostgres(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  if (process.platform === 'win32') return true;
  try {
    return execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' }).includes(
      'postgres',
    );
  } catch {
    return false; // it has just ended
  }
}
