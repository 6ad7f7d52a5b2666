import fc from 'fast-check';
import { isNumeric, isOrdered, timeBuckets } from '../../../src/projections/columns/aggregate-columns.ts';
import type { Column } from '../../../src/projections/columns/column.ts';
import { decimal } from '../../../src/projections/columns/decimal.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import type { AggregateQuery, Grouping, Measure, PageQuery } from '../../../src/projections/queries/row-query.ts';
import { filtersOf, ordersOf, scalarColumns, valuesOf } from './order-book.ts';

export function pagesOf(projection: Projection): fc.Arbitrary<PageQuery> {
  return ordersOf(projection).chain((orderBy) => {
    const columns = [...orderBy.map(({ column }) => column), ...projection.keyColumns];
    const cursor = fc.tuple(...columns.map((name) => valuesOf(projection.columns[name] as Column)));
    return fc.record({
      where: filtersOf(projection),
      orderBy: fc.constant(orderBy),
      columns: fc.constant(Object.keys(projection.columns)),
      direction: fc.constantFrom('forward', 'backward'),
      limit: fc.integer({ min: 0, max: 12 }),
      after: fc.option(cursor, { nil: null, freq: 2 }),
      before: fc.option(cursor, { nil: null, freq: 2 }),
    });
  });
}

export function aggregatesOf(projection: Projection): fc.Arbitrary<AggregateQuery> {
  const columns = Object.entries(projection.columns);
  const named = (of: (column: Column) => boolean) => columns.filter(([, column]) => of(column)).map(([name]) => name);
  const measures: Measure[] = [
    { kind: 'count' },
    ...scalarColumns(projection).map((column): Measure => ({ kind: 'countDistinct', column })),
    ...named(isNumeric).flatMap((column): Measure[] => [
      { kind: 'sum', column },
      { kind: 'avg', column },
    ]),
    ...named(isOrdered).flatMap((column): Measure[] => [
      { kind: 'min', column },
      { kind: 'max', column },
    ]),
  ];
  const groupings: Grouping[] = [
    ...scalarColumns(projection).map((column) => ({ column, bucket: null })),
    ...columns.flatMap(([name, column]) => timeBuckets(column).map((bucket) => ({ column: name, bucket }))),
  ];
  const condition = fc.constantFrom(...measures).chain((measure) =>
    fc.record({
      measure: fc.constant(measure),
      operator: fc.constantFrom('eq', 'ne', 'lt', 'lte', 'gt', 'gte'),
      value: boundOf(projection, measure),
    }),
  );
  return fc.subarray(groupings, { maxLength: 3 }).chain((groupBy) =>
    fc.record({
      where: filtersOf(projection),
      groupBy: fc.constant(groupBy),
      measures: fc.subarray(measures),
      having: fc.array(condition, { maxLength: 2 }),
      orderBy: fc.array(
        fc.record({
          by: fc.constantFrom(...measures, ...groupBy),
          direction: fc.constantFrom('asc', 'desc'),
          nulls: fc.constantFrom('first', 'last'),
        }),
        { maxLength: 3 },
      ),
      limit: fc.option(fc.integer({ min: 0, max: 5 }), { nil: null }),
    }),
  );
}

function boundOf(projection: Projection, measure: Measure): fc.Arbitrary<unknown> {
  if (measure.kind === 'count' || measure.kind === 'countDistinct') return fc.integer({ min: 0, max: 4 }).map(decimal);
  const column = projection.columns[measure.column] as Column; // it is declared
  const present = valuesOf(column).filter((value) => value !== null);
  return measure.kind === 'min' || measure.kind === 'max' ? present : present.map((value) => decimal(value as bigint));
}
