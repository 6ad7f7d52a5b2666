import { sql } from 'kysely';
import type { GlobalPosition } from '../events/global-position.ts';
import type { Projection, RowKey } from '../projections/projection.ts';
import type { RowFilter } from '../projections/row-query.ts';
import { filterSql } from './row-filter.ts';
import { hasKey } from './row-queries.ts';
import { builder, type Queryable, run } from './statement.ts';

/** What a version changed since a checkpoint, seen in one snapshot with where it is now. */
export interface RecentChanges {
  /** Null where the registry does not know the version. */
  readonly checkpoint: GlobalPosition | null;
  /** The server's time, in milliseconds. */
  readonly readAt: number;
  /** Oldest first; each holds the keys that one batch wrote and removed, as JSON gives them. */
  readonly batches: readonly (readonly RowKey[])[];
}

/** The changes after a checkpoint, `limit` batches at most; after null there are none, only where the version is. */
export async function readChanges(
  db: Queryable,
  { name, version }: Projection,
  after: GlobalPosition | null,
  limit: number,
): Promise<RecentChanges> {
  const rows = await db.query<{
    checkpoint: GlobalPosition | null;
    readAt: number;
    upserted: RowKey[] | null;
    deleted: RowKey[] | null;
  }>({
    name: 'read changes',
    text: `
      with position as (
        select min(checkpoint) as checkpoint
        from refold.processors
        where name = $1 and version = $2
      )
      select position.checkpoint, (extract(epoch from now()) * 1000)::float8 as "readAt", upserted, deleted
      from position
      left join lateral (
        select checkpoint, upserted, deleted
        from refold.changes
        where name = $1 and version = $2 and checkpoint > $3
        order by checkpoint
        limit $4
      ) as change on true
      order by change.checkpoint`,
    values: [name, version, after, limit],
  });
  return {
    checkpoint: rows[0]?.checkpoint ?? null,
    readAt: rows[0]?.readAt ?? 0,
    batches: rows
      .filter((row) => row.upserted !== null)
      .map((row) => [...(row.upserted ?? []), ...(row.deleted ?? [])]),
  };
}

// PostgreSQL's limit is 1664 columns in a result.
const filtersInOneStatement = 500;

/** For each filter, whether any row with one of the keys matches it: all filters in one statement, up to some hundreds. */
export async function matchFilters(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  keys: readonly RowKey[],
  filters: readonly (RowFilter | null)[],
): Promise<boolean[]> {
  const matched: boolean[] = [];
  for (let start = 0; start < filters.length; start += filtersInOneStatement) {
    const some = filters.slice(start, start + filtersInOneStatement);
    const columns = some.map((filter, index) =>
      sql<boolean | null>`bool_or(${filterSql(projection, filter)})`.as(`m${index}`),
    );
    const query = builder
      .withSchema(readSchema)
      .selectFrom(projection.tableName)
      .select(columns)
      .where(hasKey(projection, keys));
    const [row] = await run<Record<string, boolean | null>>(db, query.compile());
    matched.push(...some.map((_, index) => row?.[`m${index}`] === true));
  }
  return matched;
}
