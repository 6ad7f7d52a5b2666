import { execFileSync, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { embeddedOwnerLockKey } from '../server/lock-keys.ts';
import { type Cluster, runAs, stopParameters } from './embedded-binaries.ts';

/** A running server, as its data directory tells. */
export interface RunningServer {
  readonly pid: number;
  readonly port: number;
}

/** This process's part in a server: it runs for as long as any process has one. */
export interface ServerShare {
  readonly client: pg.Client;
  /** Gives the part back; the last one stops the server. */
  leave(): Promise<void>;
}

/**
 * Takes part in a running server: each process that uses it holds an advisory lock there, shared. A lock in the server, unlike a process id in
 * a file, can't outlive its holder. Undefined where the server is starting up or being stopped.
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
    // As if it were not there: whoever asks looks again.
  }
  await client.end().catch(() => {});
  return undefined;
}

/** Stops the server unless another process has a part in it; whether it did. The lock keeps others from taking one meanwhile. */
export async function stopIfUnused(cluster: Cluster, client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ unused: boolean }>('select pg_try_advisory_lock($1) as unused', [
    embeddedOwnerLockKey,
  ]);
  if (!rows[0]?.unused) return false;
  await runAs(cluster.account, cluster.binaries.pg_ctl, stopParameters(cluster.dataDir, '-w'));
  return true;
}

/** For a process that ends without a word to the server (an exit, an error that nobody caught): another one looks after it. */
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

/** A connection that takes no part yet. */
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

/** The server that runs in a data directory, if one does. */
export async function runningServer(dataDir: string): Promise<RunningServer | undefined> {
  const text = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // Documented order: process id, data directory, start time, port, …
  const [pid, , , port] = text.split('\n').map(Number);
  if (!pid) return undefined; // it is being written
  if (isPostgres(pid)) return { pid, port: port ?? 0 };
  // The id went to another process, after a restart of the machine: PostgreSQL itself would refuse to start.
  const now = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (now === text) await rm(pidFile(dataDir), { force: true });
  return undefined;
}

function isPostgres(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: there is such a process, of another user.
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
