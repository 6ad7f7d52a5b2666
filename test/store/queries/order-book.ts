import fc from 'fast-check';
import { z } from 'zod';
import { defineEvents } from '../../../src/events/event-family.ts';
import { type Column, type ColumnKind, isContainer, t } from '../../../src/projections/columns/column.ts';
import { decimal } from '../../../src/projections/columns/decimal.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { defineProjection } from '../../../src/projections/declaration/define-projection.ts';
import { keyText, type Projection } from '../../../src/projections/projection/projection.ts';
import { storedJson } from '../../../src/projections/queries/json-containment.ts';
import type { JsonValue, RowFilter, RowOrder } from '../../../src/projections/queries/row-query.ts';

const orders = defineEvents('order', { Placed: z.object({}) });

/** One key column, and a column of each type. */
export const orderBook: Projection = defineProjection({
  name: 'order_book',
  version: 1,
  events: orders,
  table: {
    orderId: t.text().primaryKey(),
    label: t.text().nullable().index(),
    title: t.text().index({ search: true }),
    note: t.text().nullable().index({ long: true }),
    status: t.enum(['Opened', 'Confirmed', 'Cancelled']).nullable().index(),
    amount: t.decimal(14, 2).nullable().index(),
    units: t.integer().index(),
    total: t.bigint().nullable().index(),
    paid: t.boolean().nullable().index(),
    token: t.uuid().nullable().index(),
    digest: t.bytes({ maxBytes: 64 }).nullable().index(),
    day: t.date().nullable().index(),
    placedAt: t.timestamptz().index(),
    items: t.list(t.object({ name: t.text(), price: t.decimal(14, 2) })).index(),
    tags: t.list(t.text()).nullable().index(),
    extra: t.json<object>().nullable().index(),
  },
  key: (event) => event.streamId,
  evolve: { Placed: () => null },
});

/** Three key columns of different types. */
export const shelfPlaces: Projection = defineProjection({
  name: 'shelf_places',
  version: 3,
  events: orders,
  table: {
    shop: t.text().primaryKey(),
    shelf: t.integer().primaryKey(),
    day: t.date().primaryKey(),
    label: t.text().nullable().index({ long: true }),
    units: t.integer().index(),
  },
  key: (event) => ({ shop: event.streamId, shelf: 1, day: '2026-01-31' }),
  evolve: { Placed: () => null },
});

const texts = [
  '',
  'a',
  'A',
  'ab',
  'a%',
  'a_',
  'a\\',
  'b',
  'é',
  'z',
  'ß',
  'SS',
  'Straße',
  'ΑΣ',
  'ΑΣΒ',
  'ας',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '😀',
  '\u{10ffff}',
  "'",
  '"',
  ',',
];

/** Many of these have the first 256 characters in common. */
const longTexts = fc
  .tuple(
    fc.constantFrom('x', 'é', '😀', '\u{10ffff}'),
    fc.oneof(fc.constantFrom(254, 255, 256, 257, 300), fc.integer({ min: 0, max: 5000 })),
    fc.constantFrom('', 'a', 'b', 'A', '😀', '😀a', '\uffff', 'é'),
  )
  .map(([sign, times, end]) => sign.repeat(times) + end);

const documents = [
  { a: 1 },
  { a: 1, b: { c: [1, 'x', null], d: null } },
  { a: [{ b: 1 }, { b: 2, c: true }] },
  { b: {} },
  {},
  [],
  [1, 'x'],
  [[1, 'x'], [2]],
  [{ a: 1 }, 'x'],
  'x',
  7,
  true,
] as const;

/** Few values of each type, which makes rows tie, and some that are hard to compare. */
export function valuesOf(column: Column): fc.Arbitrary<unknown> {
  const present = presentValuesOf(column);
  return column.flags.nullable
    ? fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 3, arbitrary: present })
    : present;
}

function presentValuesOf({ type, flags }: Column): fc.Arbitrary<unknown> {
  switch (type.kind) {
    case 'text':
      return fc.oneof(
        fc.constantFrom(...texts),
        fc.string({ unit: 'binary', maxLength: 3 }).filter((text) => !text.includes('\0')),
        ...(flags.long || flags.search ? [longTexts] : []),
      );
    case 'enum':
      return fc.constantFrom(...type.values);
    case 'integer':
      return fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom(2_147_483_647, -2_147_483_647));
    case 'bigint':
      return fc.constantFrom(
        0n,
        1n,
        -1n,
        9_007_199_254_740_993n,
        9_223_372_036_854_775_807n,
        -9_223_372_036_854_775_808n,
      );
    case 'decimal':
      return fc.constantFrom('0', '0.1', '0.10', '-0.01', '12.50', '999999999999.99', '-999999999999.99').map(decimal);
    case 'boolean':
      return fc.boolean();
    case 'uuid':
      return fc.constantFrom(
        ...['0', '1', 'a', 'f'].map((digit) => `${digit.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`),
      );
    case 'bytes':
      return fc.constantFrom('\\x', '\\x00', '\\x0000', '\\x0a', '\\x7f', '\\x80ff', '\\xff'); // in canonical form
    case 'date':
      return fc.constantFrom('0001-01-01', '1969-12-31', '2026-01-31', '2026-02-01', '9999-12-31');
    case 'timestamptz':
      return fc.constantFrom(
        '2026-01-31T12:00:00.000Z',
        '2026-01-31T12:00:00.000001Z',
        '2026-01-31T12:00:00.100Z',
        '1969-12-31T23:59:59.999Z',
        '0001-01-01T00:00:00.000Z',
      );
    case 'json':
      return fc.constantFrom(...documents);
    case 'object':
      return fc.record(Object.fromEntries(Object.entries(type.fields).map(([name, field]) => [name, valuesOf(field)])));
    case 'list':
      return fc.array(valuesOf(type.item), { maxLength: 2 });
  }
}

export function rowsOf(projection: Projection, size: { readonly maxLength: number }): fc.Arbitrary<Row[]> {
  const columns = Object.entries(projection.columns).map(([name, column]) => [name, valuesOf(column)] as const);
  return fc.uniqueArray(fc.record(Object.fromEntries(columns)), {
    ...size,
    selector: (row) => keyText(projection.keyColumns.map((name) => row[name])),
  });
}

/** Columns that can be compared. */
export function scalarColumns(projection: Projection): string[] {
  return Object.keys(projection.columns).filter((name) => {
    const kind = projection.columns[name]?.type.kind;
    return kind !== 'json' && kind !== 'object' && kind !== 'list';
  });
}

export function filtersOf(projection: Projection): fc.Arbitrary<RowFilter | null> {
  const leaves = Object.entries(projection.columns).flatMap(([column, declared]) =>
    isContainer(declared) ? partsOf(column, declared) : leavesOf(column, declared),
  );
  const isNull = fc.record({
    kind: fc.constant('isNull' as const),
    column: fc.constantFrom(...Object.keys(projection.columns)),
    isNull: fc.boolean(),
  });
  const { filter } = fc.letrec<{ filter: RowFilter }>((tie) => ({
    filter: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(...leaves),
      isNull,
      fc.record({
        kind: fc.constantFrom('and' as const, 'or' as const),
        filters: fc.array(tie('filter'), { maxLength: 3 }),
      }),
      fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
    ),
  }));
  return fc.option(filter, { nil: null, freq: 6 });
}

function leavesOf(column: string, declared: Column): fc.Arbitrary<RowFilter>[] {
  const value = presentValuesOf(declared);
  const orNull = fc.oneof({ weight: 5, arbitrary: value }, { weight: 1, arbitrary: fc.constant(null) });
  const named = { column: fc.constant(column) };
  return [
    fc.record({
      kind: fc.constant('compare' as const),
      ...named,
      operator: fc.constantFrom('eq', 'ne', 'lt', 'lte', 'gt', 'gte'),
      value: orNull,
    }),
    fc.record({ kind: fc.constant('in' as const), ...named, values: fc.array(orNull, { maxLength: 3 }) }),
    ...(declared.flags.search
      ? [
          fc.record({
            kind: fc.constantFrom('contains' as const, 'endsWith' as const),
            ...named,
            value: value as fc.Arbitrary<string>, // of a text column
          }),
          fc.record({ kind: fc.constant('ilike' as const), ...named, value: patterns }),
        ]
      : []),
    ...(declared.type.kind === 'text'
      ? [fc.record({ kind: fc.constant('startsWith' as const), ...named, value: value as fc.Arbitrary<string> })] // of a text column
      : []),
  ];
}

/** Conditions on what a list, an object or JSON holds. */
function partsOf(column: string, { type }: Column): fc.Arbitrary<RowFilter>[] {
  const whole = type.kind === 'json' ? fc.constantFrom(...documents, null) : fc.array(partOf(type), { maxLength: 2 });
  return [
    fc.record({
      kind: fc.constant('holds' as const),
      column: fc.constant(column),
      value: whole as fc.Arbitrary<JsonValue>, // a value that such a column may hold, or a part of it
    }),
  ];
}

function partOf(type: ColumnKind): fc.Arbitrary<unknown> {
  if (type.kind !== 'list') return fc.constant({});
  const item = type.item.type;
  if (item.kind !== 'object') return presentValuesOf(type.item);
  return fc.record(
    Object.fromEntries(
      Object.entries(item.fields).map(([name, field]) => [name, presentValuesOf(field).map(storedJson)]),
    ),
    { requiredKeys: [] },
  );
}

/** Patterns of LIKE. None ends with a backslash that escapes nothing. */
const patterns: fc.Arbitrary<string> = fc
  .array(fc.constantFrom('%', '_', '\\%', '\\_', '\\\\', 'a', 'A', 'é', 'É', 'ß', 'ss', 'σ', 'Σ', 'b', '\\b', '😀'), {
    maxLength: 4,
  })
  .map((parts) => parts.join(''));

export function ordersOf(projection: Projection): fc.Arbitrary<RowOrder[]> {
  const term: fc.Arbitrary<RowOrder> = fc.record({
    column: fc.constantFrom(...scalarColumns(projection)),
    direction: fc.constantFrom('asc', 'desc'),
    nulls: fc.constantFrom('first', 'last'),
  });
  return fc.array(term, { maxLength: 3 });
}
