import type { Column } from '../../src/projections/columns/column.ts';
import { type Decimal, decimal } from '../../src/projections/columns/decimal.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import type { Grouping, Measure } from '../../src/projections/queries/row-query.ts';
import { naiveAggregates } from '../store/queries/naive-aggregates.ts';
import { columnOf, type Input, told } from './naive-values.ts';

/** The limit of the gateway under test. */
export const maxPageSize = 50;

export function groups(projection: Projection, rows: readonly Row[], args: Input): readonly Input[] {
  const by = [...new Set(args.by as readonly string[])];
  const groupings = by.map(groupingOf);
  const limit = (args.first as number | null | undefined) ?? maxPageSize; // an Int
  const having = Object.entries((args.having ?? {}) as Record<string, Input>).flatMap(([kind, part]) =>
    kind === 'count'
      ? conditions({ kind }, part)
      : Object.entries(part).flatMap(([column, operators]) =>
          conditions({ kind: kind as 'sum', column }, operators as Input),
        ),
  );
  const orderBy = ((args.orderBy ?? []) as readonly Input[]).flatMap((entry) =>
    Object.entries(entry).map(([kind, part]) => {
      const [name, word] = typeof part === 'string' ? ['', part] : (Object.entries(part as Input)[0] ?? []);
      const direction = word === 'DESC' ? ('desc' as const) : ('asc' as const);
      if (kind === 'count') return { by: { kind } as const, direction, nulls: 'last' as const };
      return { by: { kind: kind as 'sum', column: String(name) }, direction, nulls: 'last' as const };
    }),
  );
  const keys = naiveAggregates(projection, rows, {
    where: null,
    groupBy: groupings,
    measures: [],
    having,
    orderBy,
    limit,
  });
  return keys.map(({ key }) => {
    const inside = naiveRowsOf(projection, rows, groupings, key);
    const names = by.map((name, index) => [name, told(keyColumn(projection, groupings[index]), key[index])] as const);
    return { ...measuresOf(projection, inside), key: Object.fromEntries(names) };
  });
}

function conditions(measure: Measure, operators: Input) {
  return Object.entries(operators).map(([operator, value]) => ({
    measure,
    operator: operator as 'gt',
    value: decimal(value as string),
  }));
}

function naiveRowsOf(projection: Projection, rows: readonly Row[], groupBy: readonly Grouping[], key: unknown) {
  const query = { where: null, measures: [], having: [], orderBy: [], limit: null };
  const text = (value: unknown) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part));
  return rows.filter((row) => {
    const [group] = naiveAggregates(projection, [row], { ...query, groupBy });
    return text(group?.key) === text(key);
  });
}

/** `dayMonth`, `atHour`, `atDay`, `atMonth`: a column and its part of time; all other names are columns. */
function groupingOf(name: string): Grouping {
  const [, column = name, bucket] = /^(day|at)(Hour|Day|Month)$/.exec(name) ?? [];
  return { column, bucket: (bucket?.toLowerCase() as 'hour' | undefined) ?? null };
}

function keyColumn(projection: Projection, grouping: Grouping | undefined): Column {
  const column = columnOf(projection, grouping?.column ?? '');
  return grouping?.bucket === null ? column : textColumn;
}

const textColumn = { type: { kind: 'text' } } as Column; // only its kind is used

/** Measures by kind and column; each is computed only when it is read. */
export function measuresOf(projection: Projection, rows: readonly Row[]): Input {
  const measure = (asked: Measure) =>
    naiveAggregates(projection, rows, {
      where: null,
      groupBy: [],
      measures: [asked],
      having: [],
      orderBy: [],
      limit: null,
    })[0]?.measures[0] ?? null;
  const each = (kind: Exclude<Measure['kind'], 'count'>, tell: (column: Column, value: unknown) => unknown) =>
    Object.fromEntries(
      Object.entries(projection.columns).map(([name, column]) => [
        name,
        () => tell(column, measure({ kind, column: name })),
      ]),
    );
  const digits = ({ type }: Column) => (type.kind === 'decimal' ? type.scale : 0);
  return {
    count: () => measure({ kind: 'count' }),
    countDistinct: each('countDistinct', (_, value) => value),
    sum: each('sum', (column, value) => (typeof value === 'bigint' ? String(value) : told(column, value))),
    avg: each('avg', (column, value) => (value === null ? null : (value as Decimal).toFixed(digits(column) + 4))),
    min: each('min', told),
    max: each('max', told),
  };
}
