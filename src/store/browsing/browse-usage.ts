import type { Queryable } from '../statements/statement.ts';

/** What a client used of one field in a period. */
export interface UsageEntry {
  readonly path: string;
  readonly client: string;
  readonly clientVersion: string;
  /** Such as `cart_summary@1`, separated by commas; empty if it pins nothing. */
  readonly pins: string;
  readonly operations: number;
  readonly lastAt: string;
}

export interface UsagePage {
  readonly days: number;
  /** A path, or a type with all of its fields. @default all */
  readonly path?: string | undefined;
  readonly client?: string | undefined;
  /** Only paths after this one. */
  readonly after: string;
  /** How many paths the statement visits at most. */
  readonly paths: number;
}

/** The usage of the next paths, by path, the most operations first; and the last path that was visited, null if there are no more. */
export async function readUsagePage(
  db: Queryable,
  { days, path, client, after, paths }: UsagePage,
): Promise<{ readonly entries: UsageEntry[]; readonly last: string | null }> {
  const [row] = await db.query<{ entries: UsageEntry[] | null; last: string | null; visited: number }>({
    text: `
      -- finds each path with one lookup, however often it was used
      with recursive visited (path, number) as (
        (select path, 1 from refold.field_usage where path > $1 and path >= coalesce($2, '') order by path limit 1)
        union all
        select (select usage.path from refold.field_usage as usage where usage.path > visited.path order by usage.path limit 1), number + 1
        from visited
        where number < $3 and visited.path is not null
      ), entries as (
        select
          usage.path,
          client,
          client_version as "clientVersion",
          pins,
          sum(operations)::bigint::float8 as operations,
          max(last_at) as "lastAt"
        from visited
        join refold.field_usage as usage on usage.path = visited.path
        where day > (now() at time zone 'utc')::date - $4::integer
          and ($2::text is null or usage.path = $2 or split_part(usage.path, '.', 1) = $2)
          and ($5::text is null or client = $5)
        group by 1, 2, 3, 4
        order by usage.path, operations desc, client, client_version
      )
      select
        (select json_agg(entries) from entries) as entries,
        (select max(path) from visited) as last,
        (select count(path)::integer from visited) as visited`,
    values: [after, path ?? null, paths, days, client ?? null],
  });
  const { entries = null, last = null, visited = 0 } = row ?? {};
  const isPast = path !== undefined && last !== null && last !== path && !last.startsWith(`${path}.`) && last > path;
  return { entries: (entries ?? []).map(withTime), last: visited === paths && !isPast ? last : null };
}

/** A client, with what it used in a period. */
export interface ClientEntry {
  readonly name: string;
  readonly version: string;
  readonly fields: number;
  /** The most operations with one field. */
  readonly operations: number;
  readonly pins: readonly string[];
  readonly lastAt: string;
}

// The latest records that a statement reads: those of a month, of 200 clients that use 30 fields each.
const mostRecords = 180_000;

/** The clients of the last days, the latest first. Reads a bounded number of records, the latest ones. */
export async function readClients(db: Queryable, days: number): Promise<ClientEntry[]> {
  const rows = await db.query<Omit<ClientEntry, 'pins'> & { pins: string[] }>({
    text: `
      with records as (
        select path, client, client_version, pins, operations, last_at
        from refold.field_usage
        where day > (now() at time zone 'utc')::date - $1::integer
        order by day desc
        limit $2
      ), fields as (
        select client, client_version, path, sum(operations)::bigint::float8 as operations, max(last_at) as last_at, array_agg(distinct pins) as pins
        from records
        group by 1, 2, 3
      )
      select
        client as name,
        client_version as version,
        count(*)::integer as fields,
        max(operations) as operations,
        array(
          select distinct one
          from fields as own, unnest(own.pins) as pinned, unnest(string_to_array(pinned, ',')) as one
          where own.client = fields.client and own.client_version = fields.client_version and one <> ''
          order by one
        ) as pins,
        max(last_at) as "lastAt"
      from fields
      group by client, client_version
      order by max(last_at) desc, client, client_version
      limit 1000`,
    values: [days, mostRecords],
  });
  return rows;
}

/** A client that pinned a version. */
export interface PinEntry {
  readonly client: string;
  readonly clientVersion: string;
  readonly operations: number;
  readonly lastAt: string;
}

/** The clients that pinned a version in the last days, the latest first. Reads a bounded number of records, the latest ones. */
export async function readPins(db: Queryable, version: string, days: number): Promise<PinEntry[]> {
  return db.query<PinEntry>({
    text: `
      with records as (
        select path, client, client_version, pins, operations, last_at
        from refold.field_usage
        where day > (now() at time zone 'utc')::date - $2::integer
        order by day desc
        limit $3
      ), fields as (
        select client, client_version, path, sum(operations)::bigint::float8 as operations, max(last_at) as last_at
        from records
        where $1 = any (string_to_array(pins, ','))
        group by 1, 2, 3
      )
      select client, client_version as "clientVersion", max(operations) as operations, max(last_at) as "lastAt"
      from fields
      group by 1, 2
      order by max(last_at) desc, 1, 2
      limit 1000`,
    values: [version, days, mostRecords],
  });
}

/** JSON has times in another form than the driver. */
function withTime(entry: UsageEntry): UsageEntry {
  return { ...entry, lastAt: new Date(entry.lastAt).toISOString() };
}
