import { hidesKey } from '../../projections/declaration/hidden-values.ts';
import type { Projection, RowKey } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../postgres/statement.ts';
import {
  inlineGateKey,
  inlineLeaveLockKey,
  inlineRowLockKey,
  inlineRowsLockKey,
  inlineVersionLockKey,
} from '../server/lock-keys.ts';

/** A lock that an append takes for inline projections, in the words of a message. */
export interface InlineLock {
  readonly key: bigint;
  /** Whether it is taken alone; shared otherwise. */
  readonly alone: boolean;
  readonly what: string;
}

/** What an append locks of a version whose rows it touches; `keys` is null where it locks all of them. */
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
    { key: inlineGateKey, alone: false, what: 'all appends, which an inline projection is joining' },
  ];
}

/** Those of the locks that other sessions hold now, so that they can't be taken. */
export async function heldAmong(db: Queryable, locks: readonly InlineLock[]): Promise<InlineLock[]> {
  const held = await db.query<{ number: number }>({
    text: `
      select number::int as number
      from unnest($1::bigint[], $2::boolean[]) with ordinality wanted (key, alone, number)
      where exists (
        select
        from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted and pid <> pg_backend_pid()
          and database = (select oid from pg_database where datname = current_database())
          and (classid::bigint << 32 | objid::bigint) = key
          and (alone or mode = 'ExclusiveLock')
      )
      order by number`,
    values: [locks.map(({ key }) => key), locks.map(({ alone }) => alone)],
  });
  return held.flatMap(({ number }) => locks[number - 1] ?? []);
}

/** A transaction that holds locks of inline projections. */
export interface InlineHolder {
  /** Tells it from every other one. */
  readonly transaction: string;
  /** Null of a prepared transaction. */
  readonly pid: number | null;
  readonly applicationName: string | null;
  /** Age of the transaction; null where this user may not see it. */
  readonly seconds: number | null;
  /** Such as `idle in transaction`. */
  readonly state: string | null;
}

/** The transactions of others that fold into a version, or announce that it is left; the oldest first. */
export function readInlineHolders(db: Queryable, id: string): Promise<InlineHolder[]> {
  return readHolders(db, [inlineVersionLockKey(id), inlineLeaveLockKey(id)]);
}

/** The transactions of others that append; the oldest first. */
export function readAppending(db: Queryable): Promise<InlineHolder[]> {
  return readHolders(db, [inlineGateKey]);
}

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
        from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted and pid is distinct from pg_backend_pid()
          and database = (select oid from pg_database where datname = current_database())
          and (classid::bigint << 32 | objid::bigint) = any ($1)
      ) holding
      left join pg_stat_activity using (pid)
      order by xact_start`,
    values: [keys],
  });
}
