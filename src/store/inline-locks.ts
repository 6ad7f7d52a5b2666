import type { Projection, RowKey } from '../projections/projection.ts';
import { inlineGateKey, inlineRowLockKey, inlineRowsLockKey, inlineVersionLockKey } from './lock-keys.ts';
import type { Queryable } from './statement.ts';

/** A lock that an append takes for inline projections, in the words of a message. */
export interface InlineLock {
  readonly key: bigint;
  /** Whether it is taken alone; shared otherwise. */
  readonly alone: boolean;
  readonly what: string;
}

/** What an append locks of a version whose rows it touches; `keys` is null where it locks all of them. */
export function inlineLocksOf({ id }: Projection, keys: ReadonlyMap<string, RowKey> | null): InlineLock[] {
  return [
    ...[...(keys?.keys() ?? [])].map((text) => ({
      key: inlineRowLockKey(id, text),
      alone: true,
      what: `the row ${text} of ${id}`,
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
