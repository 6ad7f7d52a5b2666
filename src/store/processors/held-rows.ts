import type { GlobalPosition } from '../../events/global-position.ts';
import { keyText, type RowKey } from '../../projections/projection/projection.ts';
import type { Queryable } from '../statements/statement.ts';

/** A row that lacks an event. */
export interface LeftRow {
  readonly key: RowKey | null;
  readonly position: GlobalPosition;
  readonly reason: 'DEAD_LETTER' | 'SKIPPED';
}

interface Wanted {
  /** Dead letters up to here count. */
  readonly upTo: GlobalPosition;
  /** The positions of the reader's own events. Of skipped events only these count: others were accepted as missing. */
  readonly own: readonly GlobalPosition[];
  /** Null: any row of the table, and only whether there is one. */
  readonly keys: readonly RowKey[] | null;
}

/** The rows of a table that lack events. Without keys, at most one for each reason. */
export function readHeldRows(db: Queryable, tableName: string, { upTo, own, keys }: Wanted): Promise<LeftRow[]> {
  if (!keys)
    return db.query<LeftRow>({
      name: 'read whether rows are held',
      text: `
        (
          select null::jsonb as key, position, 'DEAD_LETTER' as reason
          from refold.dead_letters
          where table_name = $1 and position <= $2
          limit 1
        )
        union all
        (
          select null, position, 'SKIPPED'
          from refold.skips
          where table_name = $1 and position = any ($3)
          limit 1
        )`,
      values: [tableName, upTo, own],
    });
  return db.query<LeftRow>({
    name: 'read held rows',
    text: `
      with wanted as (
        select jsonb_array_elements($4::jsonb) as key
      )
      select key, min(position) as position, 'DEAD_LETTER' as reason
      from refold.dead_letters
      where table_name = $1 and key in (select key from wanted) and position <= $2
      group by key
      union all
      -- an event of which no key is known may belong to any row
      select null, position, 'DEAD_LETTER'
      from refold.dead_letters
      where table_name = $1 and key is null and position = any ($3)
      union all
      select key, position, 'SKIPPED'
      from refold.skips
      where table_name = $1 and position = any ($3) and (key is null or key in (select key from wanted))`,
    values: [tableName, upTo, own, `[${keys.map(keyText).join(',')}]`],
  });
}

// Counting all of very many takes longer than anybody waits for it.
const mostCounted = 10_000;

/** The number of rows of a table that wait for a dead letter, up to 10,000. */
export async function countHeldRows(db: Queryable, tableName: string): Promise<number> {
  const [row] = await db.query<{ count: number }>({
    name: 'count held rows',
    text: `
      select count(*)::integer as count
      from (
        select distinct key from refold.dead_letters where table_name = $1 and key is not null limit $2
      ) as held`,
    values: [tableName, mostCounted],
  });
  return row?.count ?? 0;
}
