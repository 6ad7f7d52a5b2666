import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import type { Database, Session } from '../postgres/database.ts';
import { databaseAddress } from '../postgres/database-errors.ts';
import { newProbeLockKey } from './lock-keys.ts';

export interface SessionCheckOptions {
  /** Whether the configuration treats each connection as a session of its own. */
  readonly sessions: boolean;
}

/**
 * Refuses a database whose locks do not work as appenders, readers and owners require. A lock of one connection must be visible to another
 * at once, and a connection that is configured as a session must be one. Engines and poolers that merely accept the statements would lose
 * events, and let two processes maintain one version.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE` that says what to do
 */
export async function checkSessions(
  { url, session }: Pick<Database, 'url' | 'session'>,
  { sessions }: SessionCheckOptions,
): Promise<void> {
  const open: Session[] = [];
  const another = async () => {
    const opened = await session();
    open.push(opened);
    return opened;
  };
  let broken: Error | undefined;
  try {
    const [first, second] = [await another(), await another()];
    const pids = new Set<number>();
    const problem =
      (await lockProblem(first, second, pids)) ?? (sessions ? await sessionProblem(first, pids) : undefined);
    if (problem === undefined) return;
    const address = databaseAddress(url);
    throw new RefoldError('DATABASE_UNSUITABLE', `PostgreSQL at ${address}: ${problem}`, { address });
  } catch (error) {
    // Closing the connections ends their transactions.
    broken = error as Error;
    throw error;
  } finally {
    for (const opened of open) opened.release(broken);
  }
}

/** The lock has its own kind and blocks nobody. Both transactions stay open, which forces a pooler to use two sessions. */
async function lockProblem(first: Session, second: Session, pids: Set<number>): Promise<string | undefined> {
  const key = newProbeLockKey();
  await first.query({ text: 'begin' });
  const text = 'select pg_backend_pid() as pid, pg_advisory_xact_lock_shared($1)';
  for (const { pid } of await first.query<{ pid: number }>({ text, values: [key] })) pids.add(pid);
  const looking = second.query({ text: 'begin' }).then(() => second.query<{ seen: boolean }>(isSeen(key)));
  const seen = await Promise.race([looking, pause(answerMilliseconds, undefined, { ref: false })]);
  if (!seen)
    return 'a second connection gets no response while the first one has an open transaction. Allow the pooler in between more than one connection to the server.';
  await first.query({ text: 'commit' });
  await second.query({ text: 'commit' });
  if (seen[0]?.seen) return undefined;
  return (
    'an advisory lock of one connection is not visible to another one, so events could be lost. Connect to one PostgreSQL server, ' +
    'not to several behind one address or to an engine that only accepts the lock statements.'
  );
}

/**
 * `pids`: the session of the connection's first transaction. A pooler in transaction mode now has two free sessions, and assigns the most
 * recently freed one, which is the other one, or alternates between them.
 */
async function sessionProblem(connection: Session, pids: Set<number>): Promise<string | undefined> {
  for (let number = 0; number < 2; number++) {
    const text = 'select pg_backend_pid() as pid';
    for (const { pid } of await connection.query<{ pid: number }>({ text })) pids.add(pid);
  }
  if (pids.size === 1) return undefined;
  return (
    `transactions of one connection ran in different sessions (${[...pids].join(', ')}), as behind a pooler in transaction mode: nothing that is kept in a ` +
    "session would hold. Set database.notifications to false and runtime.ownership to 'lease', for PgBouncer before 1.21 also database.prepare to false, or connect past the pooler."
  );
}

// One round trip, even on a busy machine.
const answerMilliseconds = 10_000;

/** Looks for a lock as the view `refold.advisory_locks` does: by the two halves of its key, in this database. */
function isSeen(key: bigint) {
  return {
    text: `
      select exists (
        select
        from pg_locks
        where locktype = 'advisory' and objsubid = 1
          and (classid::bigint << 32 | objid::bigint) = $1
          and database = (select oid from pg_database where datname = current_database())
      ) as seen`,
    values: [key],
  };
}
