import { type CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { Row } from '../../projections/columns/row-codec.ts';
import { partitionOf } from '../../projections/projection/partition.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { PageQuery, RowFilter, RowPage } from '../../projections/queries/row-query.ts';
import { isDistributed, partitionColumn } from '../statements/placed.ts';
import { runPrepared } from '../statements/prepared.ts';
import { builder, type Queryable, type Statement } from '../statements/statement.ts';
import { boundArray, canonicalKey, columnOf, columnRef, comparedWithAny, placeRef } from '../tables/row-values.ts';
import { afterCursor, beforeCursor, orderTerms, reversed } from './keyset.ts';
import { allOf, filterSql } from './row-filter.ts';

/**
 * Reads the rows with these keys, in the same order, with one statement. Null if a row does not exist or does not match `where`. A row
 * contains the requested columns and the key columns. `by`: the columns that identify a row, either the key's or unique ones.
 *
 * @throws RefoldError `BAD_USER_INPUT` for an impossible key.
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
  const within = db.elsewhere && by === projection.keyColumns ? withinPartitions(db, projection, distinct) : undefined;
  const rows = await read(db, projection, keyQuery(readSchema, projection, distinct, columns, where, by, within));
  const byKey = new Map(rows.map((row) => [keyText(by.map((name) => row[name])), row]));
  return texts.map((text) => byKey.get(text) ?? null);
}

/**
 * Reads one page by keyset: the rows after (or before) a cursor in a total order. Concurrent writes do not shift it. A client that passes
 * `after` has a previous page, and one that passes `before` has a next page, because a cursor belongs to a row.
 *
 * @throws RefoldError `BAD_USER_INPUT` for an unknown column, or an impossible value or cursor.
 */
export async function findPage(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  query: PageQuery,
): Promise<RowPage> {
  return pageOf(await read(db, projection, pageQuery(readSchema, projection, query)), query);
}

/** Builds the page from the found rows. They are in the direction of the query, and one more than its limit if there are more. */
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

/** The number of matching rows, counted at most up to `upTo`. @throws RefoldError `BAD_USER_INPUT` */
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

/** The number of matching rows of a table, or `upTo` if there are more; the count then stops there. */
export function countOf(
  table: RawBuilder<unknown>,
  condition: RawBuilder<boolean>,
  upTo: number | null,
): RawBuilder<{ count: bigint }> {
  if (upTo === null) return sql`select count(*) as count from ${table} where ${condition}`;
  return sql`select count(*) as count from (select 1 from ${table} where ${condition} limit ${sql.lit(upTo)}) as counted`;
}

/** The key of a row that was read with its key columns. */
export function rowKey(projection: Projection, row: Row): RowKey {
  return projection.keyColumns.map((name) => row[name]);
}

export function keyQuery(
  readSchema: string,
  projection: Projection,
  keys: readonly RowKey[],
  columns: readonly string[],
  where: RowFilter | null = null,
  by: readonly string[] = projection.keyColumns,
  /** A further condition. @default none */
  within?: RawBuilder<boolean>,
): CompiledQuery<Row> {
  const ofKeys = rowsFrom(readSchema, projection, [...columns, ...projection.keyColumns, ...by]).where(
    hasKey(projection, keys, by),
  );
  const found = within === undefined ? ofKeys : ofKeys.where(within);
  return (where === null ? found : found.where(filterSql(projection, where, readSchema))).compile();
}

/**
 * A condition that names the partitions of the keys, if the rows are distributed over the workers of a Citus cluster by partition: then only those
 * workers look for them.
 */
export function withinPartitions(
  db: Queryable,
  projection: Projection,
  keys: readonly RowKey[],
): RawBuilder<boolean> | undefined {
  if (!isDistributed(db, projection)) return undefined;
  const partitions = [...new Set(keys.map((key) => partitionOf(keyText(key), projection.partitions)))];
  return sql`${sql.ref(partitionColumn)} = any(cast(${partitions} as integer[]))`;
}

/** A condition for rows with one of the keys. Each key column is bound as one array. */
export function hasKey(
  projection: Projection,
  keys: readonly RowKey[],
  by: readonly string[] = projection.keyColumns,
): RawBuilder<boolean> {
  const values = by.map((name, index) =>
    boundArray(
      projection,
      name,
      keys.map((key) => key[index]),
    ),
  );
  const [only] = by;
  if (only !== undefined && by.length === 1) return comparedWithAny(projection, only, sql.join(values));
  return sql`(${sql.join(by.map((name) => columnRef(projection, name)))}) in (select * from unnest(${sql.join(values)}))`;
}

export function pageQuery(readSchema: string, projection: Projection, query: PageQuery): CompiledQuery<Row> {
  return pageStatement(readSchema, projection, query).statement.compile();
}

/** A page and its order. `most`: one row more than the page shows whether there are more. */
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
      // For a column without nulls, `nulls …` would only prevent the use of the index, which is ascending with nulls last.
      sql`${placeRef(projection, column)} ${sql.raw(direction)}${nulls === 'none' ? sql`` : sql.raw(` nulls ${nulls}`)}`,
  );
  const order = sql.join(sorted);
  const statement = rowsFrom(readSchema, projection, columns)
    .where(allOf(conditions))
    .orderBy(order)
    .limit(sql.lit(most));
  return { statement, order };
}

/** Selects these columns under their declared names. */
export function rowsFrom(readSchema: string, projection: Projection, columns: readonly string[]) {
  const names = [...new Set(columns)];
  for (const name of names) columnOf(projection, name);
  // Not `withSchema`: it traverses the whole statement a second time.
  return builder
    .selectFrom(`${readSchema}.${projection.tableName}`)
    .select(names.map((name) => sql`${columnRef(projection, name)}`.as(name)));
}

/** How rows are read for answers: the SQL of `evolveSql` may write numbers into JSON that JavaScript can't hold. */
export function asAnswered({ sqlFold }: Projection): Pick<Statement, 'exactJson'> {
  return sqlFold === null ? {} : { exactJson: true };
}

/** Runs a query whose columns are aliased by their declared names. */
export async function read(db: Queryable, projection: Projection, query: CompiledQuery<Row>): Promise<Row[]> {
  const rows = await runPrepared<Record<string, unknown>>(db, query, asAnswered(projection));
  return rows.map((row) => projection.codec.decode(row));
}
