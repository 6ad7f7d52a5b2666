import { type CompiledQuery, sql } from 'kysely';
import { keyText, type Projection } from '../../projections/projection/projection.ts';
import type { PageQuery, RowFilter, RowPage } from '../../projections/queries/row-query.ts';
import { runPrepared } from '../statements/prepared.ts';
import { builder, type Queryable } from '../statements/statement.ts';
import { boundArray, columnRef, compared, comparedWithAny } from '../tables/row-values.ts';
import { allOf, filterSql } from './row-filter.ts';
import { asAnswered, countOf, pageOf, pageStatement } from './row-queries.ts';

/**
 * One page for each value: of the rows whose column has that value. Uses one statement. Each page is a separate index scan, which stops at
 * the end of the page.
 *
 * @throws RefoldError `BAD_USER_INPUT` like a single page
 */
export async function findRelatedPages(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  column: string,
  values: readonly unknown[],
  query: PageQuery,
): Promise<readonly RowPage[]> {
  const { texts, distinct } = distinctOf(values);
  const found = await runPrepared(
    db,
    relatedQuery(readSchema, projection, column, distinct, query),
    asAnswered(projection),
  );
  const pages = distinct.map((): Record<string, unknown>[] => []);
  for (const { [parentName]: parent, [placeName]: _, ...row } of found) pages[Number(parent) - 1]?.push(row);
  const byText = new Map(
    distinct.map((value, index) => [
      keyText([value]),
      pageOf((pages[index] ?? []).map(projection.codec.decode), query), // same length
    ]),
  );
  return texts.map((text) => byText.get(text) ?? pageOf([], query));
}

/** For each value, the number of matching rows whose column has that value, counted at most up to `upTo`. */
export async function countRelatedRows(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  column: string,
  values: readonly unknown[],
  where: RowFilter | null,
  upTo: number | null = null,
): Promise<readonly number[]> {
  const { texts, distinct } = distinctOf(values);
  if (upTo !== null) {
    const rows = await runPrepared(db, boundedCounts(readSchema, projection, column, distinct, where, upTo));
    const counts = new Map(rows.map(({ place, count }) => [keyText([distinct[Number(place) - 1]]), Number(count)]));
    return texts.map((text) => counts.get(text) ?? 0);
  }
  const ref = columnRef(projection, column);
  const query = builder
    .withSchema(readSchema)
    .selectFrom(projection.tableName)
    .select([ref.as('value'), sql<bigint>`count(*)`.as('count')])
    .where(
      allOf([
        comparedWithAny(projection, column, boundArray(projection, column, distinct)),
        filterSql(projection, where, readSchema),
      ]),
    )
    .groupBy(sql.join([ref]))
    .compile();
  const rows = await runPrepared(db, query);
  const counts = new Map(
    rows.map((row) => [keyText([projection.codec.decodeValue(column, row.value)]), Number(row.count)]),
  );
  return texts.map((text) => counts.get(text) ?? 0);
}

/** A separate scan for each value, which stops when enough rows are counted. */
function boundedCounts(
  readSchema: string,
  projection: Projection,
  column: string,
  values: readonly unknown[],
  where: RowFilter | null,
  upTo: number,
): CompiledQuery<{ place: bigint; count: bigint }> {
  const table = sql.id(readSchema, projection.tableName);
  const condition = allOf([compared(projection, column, '=', parentValue), filterSql(projection, where, readSchema)]);
  return sql<{ place: bigint; count: bigint }>`
    select parents.place, counted.count
    from unnest(${boundArray(projection, column, values)}) with ordinality as parents (value, place)
    cross join lateral (${countOf(table, condition, upTo)}) as counted`.compile(builder);
}

export function relatedQuery(
  readSchema: string,
  projection: Projection,
  column: string,
  values: readonly unknown[],
  query: PageQuery,
): CompiledQuery<Record<string, unknown>> {
  const { statement, order } = pageStatement(readSchema, projection, query);
  const page = statement
    .select(sql`row_number() over (order by ${order})`.as(placeName))
    .where(compared(projection, column, '=', parentValue));
  return sql<Record<string, unknown>>`
    select related.*, parents.place as ${sql.ref(parentName)}
    from unnest(${boundArray(projection, column, values)}) with ordinality as parents (value, place)
    cross join lateral (${page}) as related
    order by parents.place, related.${sql.ref(placeName)}`.compile(builder);
}

// No column has such a name.
const parentName = 'place of parent';
const placeName = 'place in page';
const parentValue = sql.ref('parents.value');

function distinctOf(values: readonly unknown[]) {
  const texts = values.map((value) => keyText([value]));
  return { texts, distinct: [...new Map(values.map((value, index) => [texts[index], value])).values()] };
}
