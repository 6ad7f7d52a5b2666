import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import type { Database, Session } from '../postgres/database.ts';
import { databaseAddress } from '../postgres/database-errors.ts';
import { newProbeLockKey } from './lock-keys.ts';

export interface SessionCheckOptions {
  /** Whether the configuration takes each connection for a session of its own. */
  readonly sessions: boolean;
}

/**
 * Refuses a database whose locks are not what appenders, readers and owners rely on: a lock that one connection takes must be seen by another
 * at once, and a connection that is taken for a session must be one. Engines and poolers that only accept the statements would lose
 * events, and have one version maintained twice.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE`, with the way out
 */
export async function checkSessions(
  { url, session }: Pick<Database, 'url' | 'session'>,
  { sessions }: SessionCheckOptions,
): Promise<void> {
  const [first, second] = [await session(), await session()];
  let broken: Error | undefined;
  try {
    const pids = new Set<number>();
    const problem =
      (await lockProblem(first, second, pids)) ?? (sessions ? await sessionProblem(first, pids) : undefined);
    if (problem === undefined) return;
    const address = databaseAddress(url);
    throw new RefoldError('DATABASE_UNSUITABLE', `PostgreSQL at ${address}: ${problem}`, { address });
  } catch (error) {
    // What they have begun ends with them.
    broken = error as Error;
    throw error;
  } finally {
    first.release(broken);
    second.release(broken);
  }
}

/** The lock is of a kind of its own and in the way of nobody. Both transactions stay open, so that a pooler needs two sessions for them. */
async function lockProblem(first: Session, second: Session, pids: Set<number>): Promise<string | undefined> {
  const key = newProbeLockKey();
  await first.query({ text: 'begin' });
  const text = 'select pg_backend_pid() as pid, pg_advisory_xact_lock_shared($1)';
  for (const { pid } of await first.query<{ pid: number }>({ text, values: [key] })) pids.add(pid);
  const looking = second.query({ text: 'begin' }).then(() => second.query<{ seen: boolean }>(isSeen(key)));
  const seen = await Promise.race([looking, pause(answerMilliseconds, undefined, { ref: false })]);
  if (!seen)
    return 'a second connection gets no answer while the first one has a transaction open. Give the pooler that is between more than one connection to the server.';
  await first.query({ text: 'commit' });
  await second.query({ text: 'commit' });
  if (seen[0]?.seen) return undefined;
  return (
    'an advisory lock that one connection has taken is not seen by another one, so that events could be lost. Connect to one PostgreSQL server, ' +
    'not to several behind one address, nor to an engine that only accepts the locks of PostgreSQL.'
  );
}

/**
 * `pids`: of the session in which the connection's first transaction ran. A pooler in transaction mode has two of them free by now, and gives
 * the one that was free last, which is the other one, or both in turns.
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

// A round trip, even on a busy machine.
const answerMilliseconds = 10_000;

/** As the view `refold.tags` looks for tags. */
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
