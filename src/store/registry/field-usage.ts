import { type RawBuilder, sql } from 'kysely';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Counts of the schema elements that one client's operations used. */
export interface UsageCount {
  /** `CartSummary.totalAmount`, `Query.cartSummaries(where:)`, `CartSummaryFilter.status`, `Status.Open`, `CartSummaryFilter` */
  readonly path: string;
  readonly client: string;
  readonly clientVersion: string;
  /** The versions that the client pinned: `cart_summary@1,customer_profile@2`. */
  readonly pins: string;
  readonly operations: number;
}

/** The common name of all clients beyond the limit of counted clients. */
export const otherClients = '(others)';

/**
 * Adds to the counts of the day. Only the first `maxClients` clients of a day are counted separately; names in brackets, which are no
 * clients, are exempt.
 */
export async function addUsage(db: Queryable, counts: readonly UsageCount[], maxClients: number): Promise<void> {
  await db.query({
    text: `
      with given as (
        select *
        from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) as given (path, client, client_version, pins, operations)
      ), today as (
        select (now() at time zone 'utc')::date as day
      ), known as (
        select client, client_version
        from refold.usage_clients
        join today using (day)
      ), welcome as (
        -- clients that are new today, up to the limit
        select client, client_version
        from (select distinct client, client_version from given) as named
        where client not like '(%' and not exists (select from known where (known.client, known.client_version) = (named.client, named.client_version))
        order by client, client_version
        limit greatest(0, $6 - (select count(*) from known))
      ), welcomed as (
        insert into refold.usage_clients (day, client, client_version)
        select day, client, client_version
        from welcome
        cross join today
        order by client, client_version
        on conflict do nothing
      ), limited as (
        select client, client_version from known
        union all
        select client, client_version from welcome
      )
      insert into refold.field_usage as usage (path, day, client, client_version, pins, operations, last_at)
      select
        path,
        day,
        case when given.client like '(%' then given.client else coalesce(limited.client, $7) end,
        coalesce(limited.client_version, ''),
        pins,
        sum(operations),
        now()
      from given
      cross join today
      left join limited using (client, client_version)
      group by 1, 2, 3, 4, 5
      -- all processes lock in the same order, which prevents deadlocks
      order by 1, 2, 3, 4, 5
      on conflict (path, day, client, client_version, pins) do update
        set operations = usage.operations + excluded.operations, last_at = excluded.last_at`,
    values: [
      counts.map(({ path }) => path),
      counts.map(({ client }) => client),
      counts.map(({ clientVersion }) => clientVersion),
      counts.map(({ pins }) => pins),
      counts.map(({ operations }) => operations),
      maxClients,
      otherClients,
    ],
  });
}

export async function pruneUsage(db: Queryable, keepDays: number): Promise<void> {
  for (const table of ['refold.field_usage', 'refold.usage_clients'] as const) {
    await run(db, refoldTables.deleteFrom(table).where('day', '<', daysAgo(keepDays)));
  }
}

/** The date of this many days ago, in UTC. */
function daysAgo(days: number): RawBuilder<string> {
  return sql<string>`(now() at time zone 'utc')::date - ${days}::integer`;
}

/** Marks that a gateway records usage from now on, or that it does not. In that case nothing can be known to be unused. */
export async function markRecording(db: Queryable, records: boolean): Promise<void> {
  if (records) {
    await run(
      db,
      refoldTables
        .insertInto('refold.usage_recording')
        .defaultValues()
        .onConflict((same) => same.doNothing()),
    );
  } else await run(db, refoldTables.deleteFrom('refold.usage_recording'));
}

/** For how many days all gateways have recorded usage; null if one of them does not, or none ever has. */
export async function recordedDays(db: Queryable): Promise<number | null> {
  const [row] = await run(
    db,
    refoldTables
      .selectFrom('refold.usage_recording')
      .select(sql<number>`extract(epoch from now() - since)::float8 / 86400`.as('days')),
  );
  return row?.days ?? null;
}

export interface UsageQuery {
  /** The number of days to read, including today. */
  readonly days: number;
  /** Limits the result to these paths. A type name includes all of its fields. @default all */
  readonly paths?: readonly string[] | undefined;
  /** Excludes operations that pinned a version of this projection: activating another version does not affect them. */
  readonly unpinnedFrom?: string | undefined;
}

/** What a client used in a period. */
export interface FieldUsage extends UsageCount {
  readonly lastAt: string;
}

/** Ordered by path, then by the number of operations, highest first. */
export async function readUsage(
  db: Queryable,
  { days, paths, unpinnedFrom }: UsageQuery,
): Promise<readonly FieldUsage[]> {
  let query = refoldTables
    .selectFrom('refold.field_usage')
    .select(['path', 'client', 'client_version as clientVersion', 'pins'])
    .select(({ fn }) => [sql<bigint>`sum(operations)::bigint`.as('operations'), fn.max('last_at').as('lastAt')])
    .where('day', '>', daysAgo(days))
    .groupBy(['path', 'client', 'client_version', 'pins'])
    .orderBy('path')
    .orderBy('operations', 'desc')
    .orderBy('client')
    .orderBy('client_version');
  if (paths)
    query = query.where(
      sql<boolean>`(path = any (${paths}::text[]) or split_part(path, '.', 1) = any (${paths}::text[]))`,
    );
  if (unpinnedFrom !== undefined)
    query = query.where(sql<boolean>`',' || pins not like '%,' || ${unpinnedFrom.replaceAll('_', '\\_')} || '@%'`);
  const rows = await run(db, query);
  return rows.map((row) => ({ ...row, operations: Number(row.operations) }));
}
