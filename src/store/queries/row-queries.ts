import { type CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { Row } from '../../projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../projections/declaration/projection.ts';
import type { PageQuery, RowFilter, RowPage } from '../../projections/queries/row-query.ts';
import { runPrepared } from '../postgres/prepared.ts';
import { builder, type Queryable } from '../postgres/statement.ts';
import { boundArray, canonicalKey, columnOf, columnRef, comparableRef } from '../tables/row-values.ts';
import { afterCursor, beforeCursor, orderTerms, reversed } from './keyset.ts';
import { allOf, filterSql } from './row-filter.ts';

/**
 * The rows of these keys, in their order, null where there is none or `where` does not hold: one statement, however many keys.
 * A row has the columns asked for and the key columns. `by`: the columns that name a row here, the key's or a unique one.
 *
 * @throws RefoldError `BAD_USER_INPUT` for a key that could never be.
 */
export async function findByKeys(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  keys: readonly RowKey[],
  columns: readonly string[],
  where: RowFilter | null = null,
  by: readonly string[] = projection.keyColumns,
): Promise<readonly (Row | null)[]> {
  if (keys.length === 0) return [];
  const canonical = keys.map((key) => canonicalKey(projection, key, by));
  const texts = canonical.map(keyText);
  const distinct = [...new Map(canonical.map((key, index) => [texts[index] as string, key])).values()]; // same length
  const rows = await read(db, projection, keyQuery(readSchema, projection, distinct, columns, where, by));
  const byKey = new Map(rows.map((row) => [keyText(by.map((name) => row[name])), row]));
  return texts.map((text) => byKey.get(text) ?? null);
}

/**
 * One page by keyset: the rows after (or before) a cursor in a total order, whatever is written meanwhile.
 * There is a previous page where the client came by `after`, and a next one where it came by `before`: a cursor is a row's own.
 *
 * @throws RefoldError `BAD_USER_INPUT` for an unknown column, or a value or cursor that could never be.
 */
export async function findPage(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  query: PageQuery,
): Promise<RowPage> {
  return pageOf(await read(db, projection, pageQuery(readSchema, projection, query)), query);
}

/** The page that the rows found make: they are in the direction of the query, and one more than its limit where there are more. */
export function pageOf(found: readonly Row[], query: PageQuery): RowPage {
  const forward = query.direction === 'forward';
  const more = found.length > query.limit;
  const rows = found.slice(0, query.limit);
  return {
    rows: forward ? rows : rows.reverse(),
    hasNextPage: forward ? more : query.before !== null,
    hasPreviousPage: forward ? query.after !== null : more,
  };
}

/** How many rows match; counted no further than up to a number. @throws RefoldError `BAD_USER_INPUT` */
export async function countRows(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  where: RowFilter | null,
  upTo: number | null = null,
): Promise<number> {
  const table = sql.id(readSchema, projection.tableName);
  const query = countOf(table, filterSql(projection, where, readSchema), upTo).compile(builder);
  const [row] = await runPrepared(db, query);
  return Number(row?.count ?? 0);
}

/** How many rows of this name match, or `upTo` where they are more: no more are looked at then. */
export function countOf(
  table: RawBuilder<unknown>,
  condition: RawBuilder<boolean>,
  upTo: number | null,
): RawBuilder<{ count: bigint }> {
  if (upTo === null) return sql`select count(*) as count from ${table} where ${condition}`;
  return sql`select count(*) as count from (select from ${table} where ${condition} limit ${sql.lit(upTo)}) as counted`;
}

/** The key of a row that was read with its key columns. */
export function keyOf(projection: Projection, row: Row): RowKey {
  return projection.keyColumns.map((name) => row[name]);
}

export function keyQuery(
  readSchema: string,
  projection: Projection,
  keys: readonly RowKey[],
  columns: readonly string[],
  where: RowFilter | null = null,
  by: readonly string[] = projection.keyColumns,
): CompiledQuery<Row> {
  const found = rowsFrom(readSchema, projection, [...columns, ...projection.keyColumns, ...by]).where(
    hasKey(projection, keys, by),
  );
  return (where === null ? found : found.where(filterSql(projection, where, readSchema))).compile();
}

/** Rows with one of the keys, which are bound as one array for each key column. */
export function hasKey(
  projection: Projection,
  keys: readonly RowKey[],
  by: readonly string[] = projection.keyColumns,
): RawBuilder<boolean> {
  const refs = by.map((name) => columnRef(projection, name));
  const values = by.map((name, index) =>
    boundArray(
      projection,
      name,
      keys.map((key) => key[index]),
    ),
  );
  if (refs.length === 1) return sql`${sql.join(refs)} = any(${sql.join(values)})`;
  return sql`(${sql.join(refs)}) in (select * from unnest(${sql.join(values)}))`;
}

export function pageQuery(readSchema: string, projection: Projection, query: PageQuery): CompiledQuery<Row> {
  return pageStatement(readSchema, projection, query).statement.compile();
}

/** A page, and the order that it is in. `most`: one row more than the page has tells whether there are more. */
export function pageStatement(readSchema: string, projection: Projection, query: PageQuery, most = query.limit + 1) {
  const terms = orderTerms(projection, query.orderBy);
  const columns = [...query.columns, ...terms.map((term) => term.column)];
  const conditions = [
    filterSql(projection, query.where, readSchema),
    ...(query.after === null ? [] : [afterCursor(projection, terms, query.after)]),
    ...(query.before === null ? [] : [beforeCursor(projection, terms, query.before)]),
  ];
  const sorted = (query.direction === 'forward' ? terms : reversed(terms)).map(
    ({ column, direction, nulls }) =>
      // Without nulls their place would only keep the index, which is ascending with nulls last, from serving the order.
      sql`${comparableRef(projection, column)} ${sql.raw(direction)}${nulls === 'none' ? sql`` : sql.raw(` nulls ${nulls}`)}`,
  );
  const order = sql.join(sorted);
  const statement = rowsFrom(readSchema, projection, columns)
    .where(allOf(conditions))
    .orderBy(order)
    .limit(sql.lit(most));
  return { statement, order };
}

/** Rows with these columns, under their declared names. */
export function rowsFrom(readSchema: string, projection: Projection, columns: readonly string[]) {
  const names = [...new Set(columns)];
  for (const name of names) columnOf(projection, name);
  // Not `withSchema`: it walks through the whole statement a second time.
  return builder
    .selectFrom(`${readSchema}.${projection.tableName}`)
    .select(names.map((name) => sql`${columnRef(projection, name)}`.as(name)));
}

/** Runs a query whose columns are aliased by their declared names. */
export async function read(db: Queryable, projection: Projection, query: CompiledQuery<Row>): Promise<Row[]> {
  const rows = await runPrepared<Record<string, unknown>>(db, query);
  return rows.map((row) => projection.codec.decode(row));
}
