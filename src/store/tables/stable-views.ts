import { viewLockKey } from '../server/lock-keys.ts';
import { qualified } from '../statements/identifiers.ts';
import { partitionColumn } from '../statements/placed.ts';
import { type Queryable, runTogether } from '../statements/statement.ts';

/** A stable view, and the table that it shall show; null drops the view. */
export interface ViewMove {
  readonly name: string;
  readonly tableName: string | null;
}

/**
 * Points the stable views of projections to tables. If a table has all columns of the view, the view is replaced and not dropped: dependent
 * views, privileges and a pg_dump that has just started need the same view.
 */
export async function moveViews(db: Queryable, readSchema: string, moves: readonly ViewMove[]): Promise<void> {
  const known = moves.map(({ name, tableName }) => ({
    view: qualified(readSchema, name),
    table: tableName === null ? null : qualified(readSchema, tableName),
  }));
  const losing = await viewsLosingColumns(db, known);
  const listed = await columnsWithoutPartition(db, known);
  await runTogether(
    db,
    known.flatMap(({ view, table }) => [
      ...(table === null || losing.has(view) ? [`drop view if exists ${view}`] : []),
      ...(table === null ? [] : [`create or replace view ${view} as select ${listed.get(table) ?? '*'} from ${table}`]),
    ]),
  );
}

/** The columns of tables that are distributed by partition, all but that of the partition, by the name of the table. */
async function columnsWithoutPartition(
  db: Queryable,
  moves: readonly { readonly table: string | null }[],
): Promise<ReadonlyMap<string, string>> {
  if (db.elsewhere?.placement !== 'partition') return new Map();
  const rows = await db.query<{ target: string; columns: string }>({
    text: `
      select
        target,
        string_agg(quote_ident(attname), ', ' order by attnum) filter (where attname <> '${partitionColumn}') as columns
      from unnest($1::text[]) as moved (target)
      join pg_attribute on attrelid = to_regclass(target) and attnum > 0 and not attisdropped
      group by target
      having bool_or(attname = '${partitionColumn}')`,
    values: [moves.flatMap(({ table }) => table ?? [])],
  });
  return new Map(rows.map(({ target, columns }) => [target, columns]));
}

/** Compares name, type and order of the columns, because a replaced view must keep them. A view that does not exist loses none. */
async function viewsLosingColumns(
  db: Queryable,
  moves: readonly { readonly view: string; readonly table: string | null }[],
): Promise<ReadonlySet<string>> {
  const kept = moves.filter(({ table }) => table !== null);
  if (kept.length === 0) return new Set();
  const columnsOf = (relation: string) => `
    select attnum, attname, atttypid, atttypmod, attcollation
    from pg_attribute
    where attrelid = to_regclass(${relation}) and attnum > 0 and not attisdropped`;
  const losing = await db.query<{ view: string }>({
    text: `
      select view
      from unnest($1::text[], $2::text[]) as moved (view, target)
      where exists (${columnsOf('view')} except ${columnsOf('target')})`,
    values: [kept.map(({ view }) => view), kept.map(({ table }) => table)],
  });
  return new Set(losing.map(({ view }) => view));
}

/** Serializes transactions that move stable views: advisory locks, because a view may not exist yet. Takes them in the order of their keys. */
export async function lockViews(db: Queryable, names: readonly string[]): Promise<void> {
  const keys = names.map(viewLockKey).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  await db.query({ text: 'select pg_advisory_xact_lock(key) from unnest($1::bigint[]) as key', values: [keys] });
}
