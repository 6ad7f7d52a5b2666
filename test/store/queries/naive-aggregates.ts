import { averageScale } from '../../../src/projections/columns/aggregate-columns.ts';
import type { Column } from '../../../src/projections/columns/column.ts';
import { type Decimal, decimal } from '../../../src/projections/columns/decimal.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import type {
  AggregateQuery,
  AggregateRow,
  GroupCondition,
  Grouping,
  GroupOrder,
  Measure,
} from '../../../src/projections/queries/row-query.ts';
import { compares, compareValues, matches } from './naive-rows.ts';

/** Evaluates aggregates without SQL. */
export function naiveAggregates(
  projection: Projection,
  rows: readonly Row[],
  { where, groupBy, measures, having, orderBy, limit }: AggregateQuery,
): readonly AggregateRow[] {
  const found = rows.filter((row) => matches(where, row));
  const groups = Map.groupBy(found, (row) => JSON.stringify(groupBy.map((by) => keyText(groupValue(by, row)))));
  if (groupBy.length === 0 && groups.size === 0) groups.set('[]', []);
  const order = [...orderBy, ...groupBy.map((by): GroupOrder => ({ by, direction: 'asc', nulls: 'last' }))];
  const told = (by: Measure | Grouping, group: readonly Row[]) =>
    'bucket' in by ? groupValue(by, group[0] ?? {}) : measureOf(projection, by, group);
  return [...groups.values()]
    .filter((group) => having.every((condition) => holds(condition, measureOf(projection, condition.measure, group))))
    .sort((a, b) => {
      for (const { by, direction, nulls } of order) {
        const [x, y] = [told(by, a), told(by, b)];
        if (x === null && y === null) continue;
        if (x === null || y === null) return (x === null) === (nulls === 'first') ? -1 : 1;
        const compared = compareValues(x, y) ?? 0;
        if (compared !== 0) return direction === 'asc' ? compared : -compared;
      }
      return 0;
    })
    .slice(0, limit ?? undefined)
    .map((group) => ({
      key: groupBy.map((by) => groupValue(by, group[0] ?? {})),
      measures: measures.map((measure) => measureOf(projection, measure, group)),
    }));
}

function measureOf(projection: Projection, measure: Measure, rows: readonly Row[]): unknown {
  if (measure.kind === 'count') return rows.length;
  const { kind, column: name } = measure;
  const values = rows.map((row) => row[name]).filter((value) => value !== null);
  if (kind === 'countDistinct')
    return values.filter((value, index) => values.findIndex((other) => compareValues(other, value) === 0) === index)
      .length;
  if (values.length === 0) return null;
  const column = projection.columns[name] as Column; // it is declared
  if (kind === 'sum') return column.type.kind === 'decimal' ? sumOf(values) : BigInt(sumOf(values).toFixed());
  if (kind === 'avg') return quotient(sumOf(values), values.length, averageScale(column));
  const wanted = kind === 'min' ? -1 : 1;
  return values.reduce((best, value) => ((compareValues(value, best) ?? 0) * wanted > 0 ? value : best));
}

function sumOf(values: readonly unknown[]): Decimal {
  return values.reduce<Decimal>((sum, value) => sum.plus(decimal(value as Decimal)), decimal('0'));
}

/** Rounds half away from zero. */
function quotient(sum: Decimal, count: number, scale: number): Decimal {
  const numerator = BigInt(sum.times(decimal(10n ** BigInt(scale))).toFixed()) * 2n;
  const rounded = (numerator + (numerator < 0n ? -1n : 1n) * BigInt(count)) / (2n * BigInt(count));
  return decimal(rounded).times(decimal(`0.${'0'.repeat(scale - 1)}1`));
}

function groupValue({ column, bucket }: Grouping, row: Row): unknown {
  const value = row[column];
  if (bucket === null || typeof value !== 'string') return value;
  if (bucket === 'hour') return `${value.slice(0, 13)}:00:00.000Z`;
  return bucket === 'day' ? value.slice(0, 10) : `${value.slice(0, 7)}-01`;
}

function holds({ measure, operator, value }: GroupCondition, found: unknown): boolean {
  if (found === null) return operator === 'ne';
  const number = measure.kind === 'min' || measure.kind === 'max' ? found : decimal(found as bigint);
  return compares(operator, number, value);
}

function keyText(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : String(value);
}
