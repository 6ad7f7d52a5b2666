import { execFileSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { RefoldError } from '../errors.ts';
import { type Cluster, runAs, stopParameters } from './embedded-binaries.ts';
import { embeddedOwnerLockKey } from './lock-keys.ts';

/**
 * Makes this process the owner of a running server: it holds an advisory lock there for as long as it lives. A lock in the
 * server, unlike a process id in a file, can't outlive its holder.
 */
export async function ownServer(cluster: Cluster, port: number): Promise<pg.Client> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password: cluster.password,
    database: 'postgres',
    application_name: `refold-owner ${process.pid}`,
  });
  client.on('error', () => {}); // it ends with the server
  await client.connect();
  const { rows } = await client.query<{ owner: boolean }>('select pg_try_advisory_lock($1) as owner', [
    embeddedOwnerLockKey,
  ]);
  if (rows[0]?.owner) return client;
  const owner = await nameOfOwner(client);
  await client.end();
  throw new RefoldError(
    'INVALID_CONFIG',
    `The data directory ${cluster.dataDir} is in use by ${owner}. End that process, give this one another data directory, ` +
      'or let both share a server through DATABASE_URL.',
    { dataDir: cluster.dataDir },
  );
}

// Recovery after a crash may take its time; a server that neither starts nor ends within this has another problem.
const longestTransition = 60_000;

/** Stops a server that a killed owner has left running, so that the next start has its own settings and port. */
export async function stopLeftOver(cluster: Cluster): Promise<void> {
  for (const deadline = Date.now() + longestTransition; ; ) {
    const running = await readPidFile(cluster.dataDir);
    if (!running) return;
    if (!isPostgres(running.pid)) {
      // The id went to another process, after a restart of the machine: PostgreSQL itself would refuse to start.
      await rm(pidFile(cluster.dataDir), { force: true });
      return;
    }
    try {
      const owner = await ownServer(cluster, running.port);
      await runAs(cluster.account, cluster.binaries.pg_ctl, stopParameters(cluster.dataDir, '-w'));
      await owner.end();
      return;
    } catch (error) {
      // It may just be starting up or shutting down.
      if (error instanceof RefoldError || Date.now() > deadline) throw error;
      await setTimeout(100);
    }
  }
}

/** The port of a server that runs in this data directory and that a living process owns. */
export async function portOfOwnedServer(dataDir: string, password: string): Promise<number | undefined> {
  const running = await readPidFile(dataDir);
  if (!running || !isPostgres(running.pid)) return undefined;
  const connection = { host: '127.0.0.1', port: running.port, user: 'postgres', password, database: 'postgres' };
  const client = new pg.Client({ ...connection, application_name: 'refold-visitor' });
  client.on('error', () => {}); // it ends with the server
  try {
    await client.connect();
    const { rows } = await client.query<{ orphaned: boolean }>('select pg_try_advisory_lock($1) as orphaned', [
      embeddedOwnerLockKey,
    ]);
    return rows[0]?.orphaned ? undefined : running.port;
  } catch {
    return undefined; // starting up or shutting down: whoever starts the server finds out
  } finally {
    await client.end();
  }
}

async function nameOfOwner(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name
     from pg_stat_activity
     where starts_with(application_name, 'refold-owner ')
       and pid <> pg_backend_pid()`,
  );
  return rows[0] ? `process ${rows[0].name.slice('refold-owner '.length)}` : 'another process';
}

const pidFile = (dataDir: string) => join(dataDir, 'postmaster.pid');

async function readPidFile(dataDir: string): Promise<{ pid: number; port: number } | undefined> {
  const text = await readFile(pidFile(dataDir), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // Documented order: process id, data directory, start time, port, …
  const [pid, , , port] = text.split('\n');
  return { pid: Number(pid), port: Number(port) };
}

function isPostgres(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: there is such a process, of another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  if (process.platform === 'win32') return true;
  const name = execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8' });
  return name.includes('postgres');
}
