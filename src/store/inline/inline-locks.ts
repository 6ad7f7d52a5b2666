import { hidesKey } from '../../projections/declaration/hidden-values.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import {
  inlineGateKey,
  inlineLeaveLockKey,
  inlineRowLockKey,
  inlineRowsLockKey,
  inlineVersionLockKey,
} from '../server/lock-keys.ts';
import type { Queryable } from '../statements/statement.ts';

/** A lock that an append takes for inline projections, described for messages. */
export interface InlineLock {
  readonly key: bigint;
  /** Whether the lock is exclusive; otherwise it is shared. */
  readonly alone: boolean;
  readonly what: string;
}

/** The locks that an append takes for a version whose rows it changes. `keys` is null if it locks all rows. */
export function inlineLocksOf(projection: Projection, keys: ReadonlyMap<string, RowKey> | null): InlineLock[] {
  const { id } = projection;
  return [
    ...[...(keys?.keys() ?? [])].map((text) => ({
      key: inlineRowLockKey(id, text),
      alone: true,
      what: hidesKey(projection) ? `a row of ${id}` : `the row ${text} of ${id}`,
    })),
    { key: inlineRowsLockKey(id), alone: keys === null, what: `all rows of ${id}` },
    { key: inlineVersionLockKey(id), alone: false, what: `${id}, which is joining or leaving the appends` },
    gateLock,
  ];
}

/** Every append takes it. */
export const gateLock: InlineLock = {
  key: inlineGateKey,
  alone: false,
  what: 'all appends, which an inline projection is joining',
};

/**
 * The given locks that cannot be taken now because other sessions hold them. A shared lock conflicts only with an exclusive one
 * (`ExclusiveLock`), an exclusive one with any.
 */
export async function heldAmong(db: Queryable, locks: readonly InlineLock[]): Promise<InlineLock[]> {
  const held = await db.query<{ number: number }>({
    text: `
      select number::int as number
      from unnest($1::bigint[], $2::boolean[]) with ordinality wanted (key, alone, number)
      where exists (
        select
        from refold.advisory_locks as held
        where held.key = wanted.key
          and granted
          and pid <> pg_backend_pid()
          and (alone or mode = 'ExclusiveLock')
      )
      order by number`,
    values: [locks.map(({ key }) => key), locks.map(({ alone }) => alone)],
  });
  return held.flatMap(({ number }) => locks[number - 1] ?? []);
}

/** A transaction that holds locks of inline projections, as `refold.advisory_locks` shows it. */
export interface InlineHolder {
  /** Unique id of the transaction. */
  readonly transaction: string;
  /** Null for a prepared transaction. */
  readonly pid: number | null;
  readonly applicationName: string | null;
  /** Age of the transaction; null if this user may not see it. */
  readonly seconds: number | null;
  /** Such as `idle in transaction`. */
  readonly state: string | null;
}

/** Transactions of other sessions that fold into a version, or announce that the version leaves the appends. Oldest first. */
export function readInlineHolders(db: Queryable, id: string): Promise<InlineHolder[]> {
  return readHolders(db, [inlineVersionLockKey(id), inlineLeaveLockKey(id)]);
}

/** Whether a transaction of another session announces that the version leaves the appends, and has not committed yet. */
export async function isLeaveUndecided(db: Queryable, id: string): Promise<boolean> {
  return (await readHolders(db, [inlineLeaveLockKey(id)])).length > 0;
}

/** Transactions of other sessions that append. Oldest first. */
export function readAppending(db: Queryable): Promise<InlineHolder[]> {
  return readHolders(db, [inlineGateKey]);
}

/** A prepared transaction holds its locks without a session: it has no `pid`. */
function readHolders(db: Queryable, keys: readonly bigint[]): Promise<InlineHolder[]> {
  return db.query<InlineHolder>({
    text: `
      select
        virtualtransaction as transaction,
        pid,
        application_name as "applicationName",
        extract(epoch from clock_timestamp() - xact_start)::float8 as seconds,
        state
      from (
        select distinct virtualtransaction, pid
        from refold.advisory_locks
        where key = any ($1)
          and granted
          and pid is distinct from pg_backend_pid()
      ) holding
      left join pg_stat_activity using (pid)
      order by xact_start`,
    values: [keys],
  });
}
