import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
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

/** In milliseconds. Recovery after a crash can take a while. A server that neither starts nor stops within this time has another problem. */
export const longestTransition = 60_000;

/** This process's share in a server. The server runs while any process has one. */
export interface ServerShare {
  readonly client: pg.Client;
  /** Releases the share. The last one stops the server. */
  leave(): Promise<void>;
}

/**
 * Joins a running server: each process that uses it holds a shared advisory lock in it. Unlike a process id in a file, such a lock cannot
 * outlive its holder. Undefined if the server is starting or stopping.
 *
 * @param user the name of the session, see {@link newUser}
 */
export async function joinServer(
  cluster: Cluster,
  { port }: RunningServer,
  user: string,
): Promise<ServerShare | undefined> {
  const client = embeddedClient(cluster.password, port, user);
  try {
    await client.connect();
    const { rows } = await client.query<{ joined: boolean }>('select pg_try_advisory_lock_shared($1) as joined', [
      embeddedOwnerLockKey,
    ]);
    if (rows[0]?.joined) {
      return {
        client,
        async leave() {
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

/** A name for the session that holds the lock. Unique, because one process may use a server twice. */
export function newUser(): string {
  return `refold-owner ${process.pid} ${randomBytes(4).toString('hex')}`;
}

/** Whether the session of a user is still there. */
export async function isUser(client: pg.Client, user: string): Promise<boolean> {
  const { rows } = await client.query('select from pg_stat_activity where application_name = $1', [user]);
  return rows.length > 0;
}

/** The ids of the other processes that use the server. */
export async function usersOf(client: pg.Client): Promise<readonly number[]> {
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name
     from pg_stat_activity
     where starts_with(application_name, 'refold-owner ')
       and pid <> pg_backend_pid()`,
  );
  return rows.map(({ name }) => Number(name.split(' ')[1]));
}

/** A connection that does not hold the shared lock yet. */
export function embeddedClient(password: string, port: number, applicationName = 'refold-visitor'): pg.Client {
  const connection = { host: '127.0.0.1', port, user: 'postgres', password, database: 'postgres' };
  const client = new pg.Client({ ...connection, application_name: applicationName });
  client.on('error', () => {}); // it ends with the server
  return client;
}

const pidFile = (dataDir: string) => join(dataDir, 'postmaster.pid');

/** The server that runs in a data directory; undefined if there is none. */
export async function runningServer(dataDir: string): Promise<RunningServer | undefined> {
  const text = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // Documented order: process id, data directory, start time, port, …
  const [pid, , , port] = text.split('\n').map(Number);
  if (!pid) return undefined; // the file is being written
  if (mayBePostgres(pid)) return { pid, port: port ?? 0 };
  // After a restart of the machine, another process may have this id. PostgreSQL would refuse to start.
  const now = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (now === text) await rm(pidFile(dataDir), { force: true });
  return undefined;
}

/** True in doubt: to take a running server for a stopped one would start a second server on its data. */
function mayBePostgres(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  if (process.platform === 'win32') return true;
  return process.platform === 'linux' ? mayBeInProc(pid) : mayBeInPs(pid);
}

/** Small images lack `ps`. */
function mayBeInProc(pid: number): boolean {
  try {
    // Documented order: process id, (program), state, … A zombie has ended and waits for its parent.
    return /^\d+ \(postgres.*\) [^ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true; // hidden from this process, or just ended
  }
}

function mayBeInPs(pid: number): boolean {
  try {
    const program = execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' });
    return program.includes('postgres');
  } catch (error) {
    return !(error instanceof Error && 'status' in error && error.status === 1); // 1: there is no such process
  }
}
