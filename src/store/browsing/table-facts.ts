import type { Queryable } from '../statements/statement.ts';

/** A read table as PostgreSQL keeps it. */
export interface TableFacts {
  readonly schema: string;
  readonly name: string;
  /** PostgreSQL's estimate. */
  readonly rows: bigint;
  readonly bytes: bigint;
  readonly indexBytes: bigint;
  readonly indexes: readonly IndexFacts[];
}

export interface IndexFacts {
  readonly name: string;
  readonly definition: string;
  readonly bytes: bigint;
  /** How often it was used since the server's statistics began. */
  readonly scans: bigint;
  readonly isValid: boolean;
}

/** Size and indexes of the table of a version; undefined if it has none. Reads the catalog, not the table. */
export async function readTableFacts(db: Queryable, name: string, version: number): Promise<TableFacts | undefined> {
  const [found] = await db.query<Omit<TableFacts, 'indexes'> & { oid: number }>({
    // The version is read first: a Citus cluster does not join its catalog with a table that is on a worker.
    text: `
      with stored as materialized (
        select table_schema, table_name
        from refold.projections
        where name = $1 and version = $2
      )
      select
        class.oid,
        table_schema as schema,
        table_name as name,
        nullif(reltuples, -1)::bigint as rows,
        pg_table_size(class.oid) as bytes,
        pg_indexes_size(class.oid) as "indexBytes"
      from stored
      join pg_namespace on nspname = table_schema
      join pg_class as class on class.relnamespace = pg_namespace.oid and class.relname = table_name and class.relkind in ('r', 'p')`,
    values: [name, version],
  });
  if (!found) return undefined;
  const { oid, ...table } = found;
  const indexes = await db.query<IndexFacts>({
    text: `
      select
        class.relname as name,
        pg_get_indexdef(indexrelid) as definition,
        pg_relation_size(indexrelid) as bytes,
        coalesce(pg_stat_get_numscans(indexrelid), 0) as scans,
        indisvalid as "isValid"
      from pg_index
      join pg_class as class on class.oid = indexrelid
      where indrelid = $1
      order by class.relname`,
    values: [oid],
  });
  return { ...table, indexes };
}

/** Connections to the server. */
export interface ConnectionFacts {
  readonly limit: number;
  readonly used: number;
  /** Those to this database, by program and state. */
  readonly groups: readonly { readonly applicationName: string; readonly state: string; readonly count: number }[];
}

export async function readConnections(db: Queryable): Promise<ConnectionFacts> {
  const groups = await db.query<ConnectionFacts['groups'][number] & { isOwn: boolean; limit: number }>({
    text: `
      select
        coalesce(datname = current_database(), false) as "isOwn",
        case when datname = current_database() then application_name else '' end as "applicationName",
        coalesce(state, 'unknown') as state,
        count(*)::integer as count,
        current_setting('max_connections')::integer as limit
      from pg_stat_activity
      where backend_type = 'client backend'
      group by 1, 2, 3
      order by 2, 3`,
  });
  return {
    limit: groups[0]?.limit ?? 0,
    used: groups.reduce((sum, { count }) => sum + count, 0),
    groups: groups.filter(({ isOwn }) => isOwn),
  };
}

/** Events appended per second in the last minute, from the times of the log's end. */
export async function readAppendRate(db: Queryable): Promise<number> {
  const [row] = await db.query<{ rate: number }>({
    text: `
      select
        greatest(
          0,
          refold.position_before(clock_timestamp()) - refold.position_before(clock_timestamp() - interval '1 minute')
        )::float8 / 60 as rate`,
  });
  return row?.rate ?? 0;
}
