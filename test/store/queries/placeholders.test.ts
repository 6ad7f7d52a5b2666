import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import { type AggregateQuery, type RowFilter, relatedTarget } from '../../../src/projections/queries/row-query.ts';
import { aggregateQuery, encodedMeasure } from '../../../src/store/queries/aggregate-rows.ts';
import { aggregateWithPlaceholders, Placeholder, type Placeholders } from '../../../src/store/tables/placeholders.ts';
import { encoded } from '../../../src/store/tables/row-values.ts';
import { effort } from '../../support/effort.ts';
import { filtersOf, orderBook, shelfPlaces } from './order-book.ts';

const conditions: fc.Arbitrary<AggregateQuery['having']> = fc.array(
  fc.oneof(
    fc.record({
      measure: fc.constantFrom({ kind: 'count' } as const, { kind: 'sum', column: 'units' } as const),
      operator: fc.constantFrom('eq', 'ne', 'lt', 'gte'),
      value: fc.constantFrom('1', '12.50', 3n),
    }),
    fc.record({
      measure: fc.constantFrom({ kind: 'min', column: 'label' } as const, { kind: 'max', column: 'label' } as const),
      operator: fc.constantFrom('eq', 'gt'),
      value: fc.constantFrom('a', ''),
    }),
  ),
  { maxLength: 2 },
);

const filter: fc.Arbitrary<RowFilter | null> = fc.oneof(
  filtersOf(orderBook),
  fc.record({
    kind: fc.constant('related' as const),
    quantifier: fc.constantFrom('some', 'none', 'every'),
    target: fc.constant(relatedTarget(shelfPlaces)),
    columns: fc.constant([['label', 'label']] as const),
    filter: filtersOf(shelfPlaces),
  }),
);

const query = fc.record({ where: filter, having: conditions }).map(
  ({ where, having }): AggregateQuery => ({
    where,
    groupBy: [{ column: 'status', bucket: null }],
    measures: [{ kind: 'count' }],
    having,
    orderBy: [],
    limit: null,
  }),
);

test('a statement compiled with placeholders equals, with its values filled in, the one compiled for these values', () => {
  const texts = new Map<string, string>();
  fc.assert(
    fc.property(query, (asked) => {
      const plain = aggregateQuery('read_models', orderBook, asked);
      const slots: Placeholders = { values: [], shape: '' };
      const slotted = aggregateWithPlaceholders(orderBook, asked, slots, encoded, encodedMeasure);
      if (!slotted) {
        expect(hasListOfNulls(asked.where)).toBe(true);
        return;
      }
      const { sql, parameters } = aggregateQuery('read_models', orderBook, slotted);
      expect(sql).toBe(plain.sql);
      const bound = parameters.map((value) => (value instanceof Placeholder ? slots.values[value.index] : value));
      expect(bound).toEqual(plain.parameters);
      // Every query of this shape has this text, so one compiled statement serves all of them.
      expect(texts.get(slots.shape) ?? sql).toBe(sql);
      texts.set(slots.shape, sql);
    }),
    { numRuns: effort(1000, 300) },
  );
});

test('each operator is compiled once for all values', () => {
  const compared = (projection: Projection, where: RowFilter) => {
    const slots: Placeholders = { values: [], shape: '' };
    const having = [{ measure: { kind: 'count' }, operator: 'gt', value: '1' }] as const;
    const asked = { where, groupBy: [], measures: [], having, orderBy: [], limit: null };
    expect(aggregateWithPlaceholders(projection, asked, slots, encoded, encodedMeasure)).toBeDefined();
    return slots.shape;
  };
  const of = (text: string): RowFilter[] => [
    { kind: 'startsWith', column: 'title', value: text },
    { kind: 'contains', column: 'title', value: text },
    { kind: 'endsWith', column: 'title', value: text },
    { kind: 'ilike', column: 'title', value: `${text}%` },
    { kind: 'holds', column: 'tags', value: [text] },
    {
      kind: 'related',
      quantifier: 'some',
      target: relatedTarget(shelfPlaces),
      columns: [['label', 'label']],
      filter: { kind: 'startsWith', column: 'shop', value: text },
    },
  ];
  const others = of('of another form');
  for (const [index, one] of of('a').entries())
    expect(compared(orderBook, one)).toBe(compared(orderBook, others[index] as RowFilter)); // the same number of characters
});

/** Lists that are empty or hold nulls: the statement depends on them. */
function hasListOfNulls(where: RowFilter | null): boolean {
  switch (where?.kind) {
    case 'and':
    case 'or':
      return where.filters.some(hasListOfNulls);
    case 'not':
    case 'related':
      return hasListOfNulls(where.filter);
    case 'in':
      return where.values.length === 0 || where.values.includes(null);
    default:
      return false;
  }
}
