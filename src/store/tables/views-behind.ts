import { highestActiveTables } from '../registry/definitions.ts';
import type { Queryable } from '../statements/statement.ts';

/** A stable view that does not show the version that answers yet, because another session reads it, or views of users depend on it. */
export interface ViewBehind {
  readonly name: string;
  readonly shows: number;
  /** The version that answers; null if none does, and the view shall go. */
  readonly answering: number | null;
  /** The oldest transaction that reads it; null if there is none at the moment. */
  readonly reader: {
    /** Null for a prepared transaction. */
    readonly pid: number | null;
    readonly applicationName: string | null;
    /** When its transaction began, and how long ago that is; null if this user may not see it. */
    readonly since: string | null;
    readonly seconds: number | null;
  } | null;
  /** The views that select from it, such as `reports.totals`. It can't lose a column while they exist. */
  readonly dependents: readonly string[];
}

/** The stable views that are behind the registry. A view that a user has put in place of one is left alone. */
export async function readViewsBehind(db: Queryable, readSchema: string): Promise<ViewBehind[]> {
  const shown = await readViews(db, readSchema);
  const wanted = await highestActiveTables(
    db,
    shown.map(({ name }) => name),
  );
  const behind: ViewBehind[] = [];
  for (const { name, view, tables } of shown) {
    const [table] = tables;
    const shows = table === undefined || tables.length > 1 ? null : versionOf(name, table);
    const answering = wanted.get(name);
    if (shows === null || table === answering) continue;
    behind.push({
      name,
      shows,
      answering: answering === undefined ? null : versionOf(name, answering),
      reader: await readReader(db, view),
      dependents: await readDependents(db, view),
    });
  }
  return behind;
}

// The tables of a version: `cart_summary_v2`, and with each rebuild `cart_summary_v2_g2`.
function versionOf(name: string, table: string): number | null {
  const found = table.startsWith(`${name}_v`) ? /^(\d+)(_g\d+)?$/.exec(table.slice(name.length + 2)) : null;
  return found ? Number(found[1]) : null;
}

/** Not joined with the registry: a Citus cluster joins no catalog with other tables. */
function readViews(
  db: Queryable,
  readSchema: string,
): Promise<{ readonly name: string; readonly view: string; readonly tables: readonly string[] }[]> {
  return db.query({
    name: 'stable views',
    text: `
      select shown.relname::text as name, shown.oid::text as view, array_agg(distinct target.relname::text) as tables
      from pg_class shown
      join pg_namespace on pg_namespace.oid = shown.relnamespace and nspname = $1
      join pg_rewrite on ev_class = shown.oid
      join pg_depend on classid = 'pg_rewrite'::regclass and objid = pg_rewrite.oid and refclassid = 'pg_class'::regclass
      join pg_class target on target.oid = refobjid and target.oid <> shown.oid
      where shown.relkind = 'v'
      group by shown.relname, shown.oid`,
    values: [readSchema],
  });
}

async function readDependents(db: Queryable, view: string): Promise<readonly string[]> {
  const rows = await db.query<{ dependent: string }>({
    text: `
      select distinct ev_class::regclass::text as dependent
      from pg_depend
      join pg_rewrite on pg_rewrite.oid = objid
      where classid = 'pg_rewrite'::regclass
        and refclassid = 'pg_class'::regclass
        and refobjid = $1::oid
        and ev_class <> refobjid
      order by dependent`,
    values: [view],
  });
  return rows.map(({ dependent }) => dependent);
}

async function readReader(db: Queryable, view: string): Promise<ViewBehind['reader']> {
  const [reader] = await db.query<NonNullable<ViewBehind['reader']>>({
    text: `
      select
        pid,
        application_name as "applicationName",
        xact_start as since,
        extract(epoch from clock_timestamp() - xact_start)::float8 as seconds
      from pg_locks
      left join pg_stat_activity using (pid)
      where locktype = 'relation'
        and relation = $1::oid
        and granted
        and database = (select oid from pg_database where datname = current_database())
        and pid is distinct from pg_backend_pid()
      order by xact_start
      limit 1`,
    values: [view],
  });
  return reader ?? null;
}
