import { type CompiledQuery, type RawBuilder, sql } from 'kysely';
import { RefoldError } from '../../errors.ts';
import { averageScale, isNumeric, isOrdered, timeBuckets } from '../../projections/columns/aggregate-columns.ts';
import { type Column, isContainer } from '../../projections/columns/column.ts';
import { decimal } from '../../projections/columns/decimal.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type {
  AggregateQuery,
  AggregateRow,
  GroupCondition,
  Grouping,
  GroupOrder,
  Measure,
} from '../../projections/queries/row-query.ts';
import { runPrepared } from '../statements/prepared.ts';
import { builder, type Queryable } from '../statements/statement.ts';
import { Placeholder } from '../tables/placeholders.ts';
import { boundValue, columnOf, columnRef, comparableRef, encoded } from '../tables/row-values.ts';
import { allOf, filterSql } from './row-filter.ts';

/**
 * Aggregates a table's rows, in total or in groups, with one statement. Exact: no floats are used.
 *
 * @throws RefoldError `BAD_USER_INPUT` for a column without such a measure or grouping, or an impossible value.
 */
export async function aggregateRows(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  query: AggregateQuery,
): Promise<readonly AggregateRow[]> {
  const rows = await runPrepared(db, aggregateQuery(readSchema, projection, query));
  return rows.map((row) => ({
    key: query.groupBy.map((grouping, index) => decodeKey(projection, grouping, row[keyName(index)])),
    measures: query.measures.map((measure, index) => decodeMeasure(projection, measure, row[measureName(index)])),
  }));
}

export function aggregateQuery(
  readSchema: string,
  projection: Projection,
  query: AggregateQuery,
): CompiledQuery<Record<string, unknown>> {
  return aggregateStatement(readSchema, projection, query).compile();
}

/** Names its columns by {@link keyName} and {@link measureName}. */
export function aggregateStatement(
  readSchema: string,
  projection: Projection,
  { where, groupBy, measures, having, orderBy, limit }: AggregateQuery,
) {
  const keys = groupBy.map((grouping) => groupingSql(projection, grouping));
  const selected = [
    ...keys.map((key, index) => key.as(keyName(index))),
    ...measures.map((measure, index) => measureSql(projection, measure).as(measureName(index))),
    sql<number>`count(*)`.as('rows of the group'), // ensures one column; without groupings it also ensures one group
  ];
  const ascending = groupBy.map((by): GroupOrder => ({ by, direction: 'asc', nulls: 'last' }));
  return builder
    .withSchema(readSchema)
    .selectFrom(projection.tableName)
    .select(selected)
    .where(filterSql(projection, where, readSchema))
    .$if(keys.length > 0, (statement) => statement.groupBy(sql.join(keys)))
    .$if(having.length > 0, (statement) =>
      statement.having(allOf(having.map((condition) => conditionSql(projection, condition)))),
    )
    .$if(groupBy.length > 0, (statement) =>
      statement.orderBy(sql.join([...orderBy, ...ascending].map((order) => orderSql(projection, order)))),
    )
    .$if(limit !== null, (statement) => statement.limit(sql.lit(limit ?? 0)));
}

// No column has such a name.
export const keyName = (index: number) => `key ${index}`;
export const measureName = (index: number) => `measure ${index}`;

function measureSql(projection: Projection, measure: Measure): RawBuilder<unknown> {
  if (measure.kind === 'count') return sql`count(*)`;
  const { kind, column: name } = measure;
  const column = columnOf(projection, name);
  if (!has[kind](column)) throw badInput(`column '${name}' is ${column.type.kind}; it has no ${kind}.`);
  const ref = comparableRef(projection, name);
  if (kind === 'countDistinct') return sql`count(distinct ${ref})`;
  return kind === 'avg' ? averageSql(ref, averageScale(column)) : sql`${sql.raw(kind)}(${ref})`;
}

const has = {
  countDistinct: (column: Column) => !isContainer(column),
  sum: isNumeric,
  avg: isNumeric,
  min: isOrdered,
  max: isOrdered,
} as const;

/**
 * PostgreSQL's division of numerics rounds to a number of digits that it chooses. Rounding that again could make the last digit wrong. A
 * division of whole numbers is exact.
 */
function averageSql(ref: RawBuilder<unknown>, scale: number): RawBuilder<unknown> {
  const sum = sql`cast(sum(${ref}) as numeric)`;
  const twice = sql.raw(`2${'0'.repeat(scale)}`);
  const unit = sql.raw(`0.${'0'.repeat(scale - 1)}1`);
  return sql`div(${sum} * ${twice} + sign(${sum}) * count(${ref}), 2 * cast(count(${ref}) as numeric)) * ${unit}`;
}

function groupingSql(projection: Projection, { column: name, bucket }: Grouping): RawBuilder<unknown> {
  const ref = columnRef(projection, name);
  if (bucket === null) return ref;
  const column = columnOf(projection, name);
  if (!timeBuckets(column).includes(bucket))
    throw badInput(`column '${name}' is ${column.type.kind}; it can't be grouped by ${bucket}.`);
  const time = column.type.kind === 'date' ? sql`cast(${ref} as timestamp)` : sql`${ref} at time zone 'UTC'`;
  const start = sql`date_trunc(${sql.lit(bucket)}, ${time})`;
  return bucket === 'hour' ? sql`${start} at time zone 'UTC'` : sql`cast(${start} as date)`;
}

function conditionSql(projection: Projection, { measure, operator, value }: GroupCondition): RawBuilder<boolean> {
  const sign = { eq: '=', ne: 'is distinct from', lt: '<', lte: '<=', gt: '>', gte: '>=' }[operator];
  return sql`${measureSql(projection, measure)} ${sql.raw(sign)} ${measureBound(projection, measure, value)}`;
}

function measureBound(projection: Projection, measure: Measure, value: unknown): RawBuilder<unknown> {
  if (measure.kind === 'min' || measure.kind === 'max') return boundValue(projection, measure.column, value);
  return sql`cast(${encodedMeasure(projection, measure, value)} as numeric)`;
}

/** Encodes a value that is compared with a measure. @throws RefoldError `BAD_USER_INPUT` */
export function encodedMeasure(projection: Projection, measure: Measure, value: unknown): unknown {
  if (value instanceof Placeholder) return value;
  if (measure.kind === 'min' || measure.kind === 'max') return encoded(projection, measure.column, value);
  try {
    return decimal(value as string).toFixed(); // or another form of a decimal; throws otherwise
  } catch (cause) {
    throw badInput(`'${measure.kind}' must be compared with a number, found ${String(value)}.`, cause);
  }
}

function orderSql(projection: Projection, { by, direction, nulls }: GroupOrder): RawBuilder<unknown> {
  const key = 'bucket' in by;
  const value = !key
    ? measureSql(projection, by)
    : by.bucket === null
      ? comparableRef(projection, by.column)
      : groupingSql(projection, by);
  return sql`${value} ${sql.raw(direction)} nulls ${sql.raw(nulls)}`;
}

function decodeKey(projection: Projection, { column, bucket }: Grouping, raw: unknown): unknown {
  return bucket === null ? projection.codec.decodeValue(column, raw) : raw; // an instant or a day, as the driver returns it
}

function decodeMeasure(projection: Projection, measure: Measure, raw: unknown): unknown {
  if (raw === null) return null;
  switch (measure.kind) {
    case 'count':
    case 'countDistinct':
      return Number(raw);
    case 'sum':
      return columnOf(projection, measure.column).type.kind === 'decimal'
        ? decimal(raw as string)
        : BigInt(raw as string); // numeric text, or a bigint
    case 'avg':
      return decimal(raw as string); // numeric text
    case 'min':
    case 'max':
      return projection.codec.decodeValue(measure.column, raw);
  }
}

function badInput(problem: string, cause?: unknown): RefoldError {
  return new RefoldError('BAD_USER_INPUT', problem, {}, { cause });
}
