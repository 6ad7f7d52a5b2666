import type { Queryable } from '../postgres/statement.ts';

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
 * Adds to the counts of the day. Only the first `mostClients` clients of a day are counted separately; names in brackets, which are no
 * clients, are exempt.
 */
export async function addUsage(db: Queryable, counts: readonly UsageCount[], mostClients: number): Promise<void> {
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
      ), told_apart as (
        select client, client_version from known
        union all
        select client, client_version from welcome
      )
      insert into refold.field_usage as usage (path, day, client, client_version, pins, operations, last_at)
      select
        path,
        day,
        case when given.client like '(%' then given.client else coalesce(told_apart.client, $7) end,
        coalesce(told_apart.client_version, ''),
        pins,
        sum(operations),
        now()
      from given
      cross join today
      left join told_apart using (client, client_version)
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
      mostClients,
      otherClients,
    ],
  });
}

export async function pruneUsage(db: Queryable, keepDays: number): Promise<void> {
  for (const table of ['field_usage', 'usage_clients']) {
    await db.query({
      text: `delete from refold.${table} where day < (now() at time zone 'utc')::date - $1::integer`,
      values: [keepDays],
    });
  }
}

/** Marks that a gateway records usage from now on, or that it does not. In that case nothing can be known to be unused. */
export async function markRecording(db: Queryable, records: boolean): Promise<void> {
  await db.query({
    text: records
      ? 'insert into refold.usage_recording default values on conflict do nothing'
      : 'delete from refold.usage_recording',
  });
}

/** For how many days all gateways have recorded usage; null if one of them does not, or none ever has. */
export async function recordedDays(db: Queryable): Promise<number | null> {
  const rows = await db.query<{ days: number }>({
    text: `select extract(epoch from now() - since)::float8 / 86400 as days from refold.usage_recording`,
  });
  return rows[0]?.days ?? null;
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
  { days, paths, unpinnedFrom = '' }: UsageQuery,
): Promise<readonly FieldUsage[]> {
  const rows = await db.query<Omit<FieldUsage, 'operations'> & { operations: bigint }>({
    text: `
      select path, client, client_version as "clientVersion", pins, sum(operations)::bigint as operations, max(last_at) as "lastAt"
      from refold.field_usage
      where day > (now() at time zone 'utc')::date - $1::integer
        and ($2::text[] is null or path = any ($2) or split_part(path, '.', 1) = any ($2))
        and ($3 = '' or ',' || pins not like '%,' || $4 || '@%')
      group by path, client, client_version, pins
      order by path, operations desc, client, client_version`,
    values: [days, paths ?? null, unpinnedFrom, unpinnedFrom.replaceAll('_', '\\_')],
  });
  return rows.map((row) => ({ ...row, operations: Number(row.operations) }));
}
