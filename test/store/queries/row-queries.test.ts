import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { decimal } from '../../../src/projections/columns/decimal.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { keyText, type Projection } from '../../../src/projections/projection/projection.ts';
import { matchesFilter } from '../../../src/projections/queries/matches-filter.ts';
import type { Cursor, PageQuery, RowFilter, RowOrder } from '../../../src/projections/queries/row-query.ts';
import { countRows, findByKeys, findPage } from '../../../src/store/queries/row-queries.ts';
import { createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { createReadModelWriter, type ReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { cursorOf, naivePage, sorted } from './naive-rows.ts';
import { filtersOf, orderBook, ordersOf, rowsOf, shelfPlaces } from './order-book.ts';
import { pagesOf } from './random-queries.ts';

const { db } = await databaseOfFile();
let writer: ReadModelWriter;

beforeAll(async () => {
  writer = await createReadModelWriter(db, orderBook);
  await createReadModelWriter(db, shelfPlaces);
});

describe.each([
  ['one key column', orderBook],
  ['three key columns', shelfPlaces],
])('Reads of a table with %s', (_, projection) => {
  test('return the page of a naive evaluation, for any rows, filter, order and cursors', async () => {
    const cases = fc.record({
      rows: rowsOf(projection, { maxLength: 30 }),
      queries: fc.array(pagesOf(projection), { minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ rows, queries }) => {
        await fill(projection, rows);
        for (const query of queries) {
          expect(await findPage(db, readSchema, projection, query)).toEqual(naivePage(projection, rows, query));
          const matching = sorted(projection, rows, { ...query });
          expect(await countRows(db, readSchema, projection, query.where)).toBe(matching.length);
          const upTo = query.limit + 1;
          expect(await countRows(db, readSchema, projection, query.where, upTo)).toBe(Math.min(matching.length, upTo));
          expect(rows.filter((row) => matchesFilter(query.where, row)).length).toBe(matching.length);
        }
      }),
      { numRuns: effort(100, 25) },
    );
  });

  test('visit the whole list forward and backward, for any page sizes', async () => {
    const walks = fc.record({
      rows: rowsOf(projection, { maxLength: 30 }),
      where: filtersOf(projection),
      orderBy: ordersOf(projection),
      limits: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(walks, async ({ rows, where, orderBy, limits }) => {
        await fill(projection, rows);
        const whole = sorted(projection, rows, { where, orderBy });
        expect(await walk(projection, { where, orderBy, direction: 'forward' }, limits)).toEqual(whole);
        expect(await walk(projection, { where, orderBy, direction: 'backward' }, limits)).toEqual(whole);
      }),
      { numRuns: effort(60, 15) },
    );
  });

  test('find rows by key in the order of the keys, with null for missing rows', async () => {
    const lookups = fc.record({
      rows: rowsOf(projection, { maxLength: 12 }),
      strangers: rowsOf(projection, { maxLength: 4 }),
      picks: fc.array(fc.nat(), { maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(lookups, async ({ rows, strangers, picks }) => {
        await fill(projection, rows);
        const keyOf = (row: Row) => projection.keyColumns.map((name) => row[name]);
        const candidates = [...rows, ...strangers].map(keyOf);
        const keys = candidates.length === 0 ? [] : picks.map((pick) => candidates[pick % candidates.length] ?? []);
        const byKey = new Map(rows.map((row) => [JSON.stringify(keyOf(row)), row]));
        const expected = keys.map((key) => byKey.get(JSON.stringify(key)) ?? null);
        expect(await findByKeys(db, readSchema, projection, keys, Object.keys(projection.columns))).toEqual(expected);
      }),
      { numRuns: effort(50, 15) },
    );
  });
});

test.each([
  'title',
  'label',
  'status',
  'amount',
  'units',
  'total',
  'paid',
  'token',
  'day',
  'placedAt',
])('rows are found by a unique column (%s) as they are by a key', async (column) => {
  const cases = fc.record({ rows: rowsOf(orderBook, { maxLength: 20 }), others: rowsOf(orderBook, { maxLength: 5 }) });
  await fc.assert(
    fc.asyncProperty(cases, async ({ rows, others }) => {
      const textOf = (row: Row) => keyText([row[column]]);
      const unique = [...new Map(rows.map((row) => [textOf(row), row])).values()];
      await fill(orderBook, unique);
      const sought = [...unique, ...others].filter((row) => row[column] !== null);
      const keys = sought.map((row) => [row[column]]);
      const expected = sought.map((row) => unique.find((other) => textOf(other) === textOf(row)) ?? null);
      const columns = Object.keys(orderBook.columns);
      expect(await findByKeys(db, readSchema, orderBook, keys, columns, null, [column])).toEqual(expected);
    }),
    { numRuns: effort(15, 5) },
  );
});

test('a row has the requested columns, those of the order and the key', async () => {
  await fill(orderBook, [order({ orderId: 'a', amount: decimal('12.5') })]);
  const page = await findPage(db, readSchema, orderBook, {
    ...everything,
    columns: ['amount'],
    orderBy: [{ column: 'units', direction: 'asc', nulls: 'last' }],
  });
  expect(page.rows).toEqual([{ orderId: 'a', amount: decimal('12.50'), units: 0 }]);
  expect(await findByKeys(db, readSchema, orderBook, [['a']], ['title'])).toEqual([{ orderId: 'a', title: '' }]);
});

test('`ne`, `not` and `in` evaluate to true or false only: a null is not equal to a value', async () => {
  await fill(orderBook, [
    order({ orderId: 'null', label: null }),
    order({ orderId: 'x', label: 'x' }),
    order({ orderId: 'y', label: 'y' }),
  ]);
  const ids = async (where: RowFilter) =>
    (await findPage(db, readSchema, orderBook, { ...everything, where })).rows.map((row) => row.orderId);
  expect(await ids({ kind: 'compare', column: 'label', operator: 'ne', value: 'x' })).toEqual(['null', 'y']);
  expect(await ids({ kind: 'not', filter: { kind: 'compare', column: 'label', operator: 'lt', value: 'y' } })).toEqual([
    'null',
    'y',
  ]);
  expect(await ids({ kind: 'compare', column: 'label', operator: 'eq', value: null })).toEqual(['null']);
  expect(await ids({ kind: 'in', column: 'label', values: [null, 'y'] })).toEqual(['null', 'y']);
  expect(await ids({ kind: 'in', column: 'label', values: [] })).toEqual([]);
  expect(await ids({ kind: 'not', filter: { kind: 'in', column: 'label', values: ['x'] } })).toEqual(['null', 'y']);
});

test('`startsWith` takes every character literally', async () => {
  await fill(
    orderBook,
    ['50%', '50_', '500', '50%off', '5'].map((title) => order({ orderId: title, title })),
  );
  const where: RowFilter = { kind: 'startsWith', column: 'title', value: '50%' };
  const page = await findPage(db, readSchema, orderBook, { ...everything, where });
  expect(page.rows.map((row) => row.orderId)).toEqual(['50%', '50%off']);
});

test('`contains` and `endsWith` take every character literally, and `ilike` takes those after a backslash literally', async () => {
  const titles = ['50%', '50_', '5000', 'a50%off', 'A50\\%OFF', '50'];
  await fill(
    orderBook,
    titles.map((title) => order({ orderId: title, title })),
  );
  const found = async (where: RowFilter) =>
    new Set((await findPage(db, readSchema, orderBook, { ...everything, where })).rows.map((row) => row.orderId));
  const contains = (value: string) => found({ kind: 'contains', column: 'title', value });
  const ilike = (value: string) => found({ kind: 'ilike', column: 'title', value });
  expect(await contains('50%')).toEqual(new Set(['50%', 'a50%off']));
  expect(await contains('50_')).toEqual(new Set(['50_']));
  expect(await contains('\\%')).toEqual(new Set(['A50\\%OFF']));
  expect(await contains('a5')).toEqual(new Set(['a50%off']));
  const endsWith = (value: string) => found({ kind: 'endsWith', column: 'title', value });
  expect(await endsWith('0%')).toEqual(new Set(['50%']));
  expect(await endsWith('off')).toEqual(new Set(['a50%off']));
  expect(await endsWith('%OFF')).toEqual(new Set(['A50\\%OFF']));
  expect(await endsWith('_')).toEqual(new Set(['50_']));
  expect(await endsWith('a50%offs')).toEqual(new Set());
  expect(await ilike('a50%')).toEqual(new Set(['a50%off', 'A50\\%OFF']));
  expect(await ilike('50\\%')).toEqual(new Set(['50%']));
  expect(await ilike('50_')).toEqual(new Set(['50%', '50_']));
});

test('a value that a column can never hold is a client error', async () => {
  const compare = (column: string, value: unknown): RowFilter => ({ kind: 'compare', column, operator: 'gt', value });
  const mistakes: readonly Partial<PageQuery>[] = [
    { where: compare('token', 'no-uuid') },
    { where: compare('day', '2026-02-30') },
    { where: compare('day', '0000-01-01') },
    { where: compare('placedAt', '9999-12-31T23:59:59-14:00') },
    { where: compare('total', 2n ** 63n) },
    { where: compare('units', 1.5) },
    { where: compare('units', '1; drop table x') },
    { where: compare('amount', '1e999999') },
    { where: compare('amount', 'ten') },
    { where: compare('title', 'a\0b') },
    { where: compare('status', 'Lost') },
    { where: compare('items', []) },
    { where: compare('nothing', 1) },
    { where: compare('toString', 1) },
    { where: { kind: 'in', column: 'token', values: ['no-uuid'] } },
    { where: { kind: 'startsWith', column: 'title', value: '\0' } },
    { where: { kind: 'contains', column: 'title', value: '\0' } },
    { where: { kind: 'endsWith', column: 'title', value: '\0' } },
    { where: { kind: 'ilike', column: 'title', value: 'a\0b' } },
    { where: { kind: 'holds', column: 'title', value: 'a' } },
    { orderBy: [{ column: 'extra', direction: 'asc', nulls: 'last' }], after: ['x', 'y'] },
    { after: ['a', 'b'] },
    { after: [null] },
    { before: [7] },
    { columns: ['nothing'] },
  ];
  for (const mistake of mistakes) {
    await expect(
      findPage(db, readSchema, orderBook, { ...everything, ...mistake }),
      JSON.stringify(mistake, showBigint),
    ).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  }
  await expect(findByKeys(db, readSchema, shelfPlaces, [['a', 1, 'today']], [])).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
  });
  await expect(findByKeys(db, readSchema, shelfPlaces, [['a', 1]], [])).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
  });
});

test('a decimal bound with more digits than the column is compared exactly', async () => {
  await fill(orderBook, [order({ orderId: 'a', amount: decimal('12.50') })]);
  const count = (operator: 'gt' | 'lt', value: string) =>
    countRows(db, readSchema, orderBook, { kind: 'compare', column: 'amount', operator, value: decimal(value) });
  expect(await count('gt', '12.4999999')).toBe(1);
  expect(await count('lt', '12.4999999')).toBe(0);
  expect(await count('lt', '12.5000001')).toBe(1);
});

test('paging returns no row twice and misses no row that stays, during concurrent writes', async () => {
  const rows = Array.from({ length: 200 }, (_, index) =>
    order({ orderId: `stays-${index}`, units: index % 7, label: index % 3 === 0 ? null : `l${index % 5}` }),
  );
  await fill(orderBook, rows);
  const orderBy: RowOrder[] = [
    { column: 'label', direction: 'desc', nulls: 'first' },
    { column: 'units', direction: 'asc', nulls: 'last' },
  ];
  const stop = new AbortController();
  const writing = (async () => {
    for (let count = 0; !stop.signal.aborted; count++) {
      await writer.write({
        upserted: [
          order({ orderId: `comes-${count}`, units: count % 7, label: count % 2 === 0 ? null : `l${count % 5}` }),
        ],
        deleted: [[`comes-${count - 3}`]],
      });
    }
  })();
  for (const direction of ['forward', 'backward'] as const) {
    const ids = (await walk(orderBook, { where: null, orderBy, direction }, [3, 11])).map((row) => String(row.orderId));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => id.startsWith('stays')).sort()).toEqual(rows.map((row) => String(row.orderId)).sort());
  }
  stop.abort();
  await writing;
});

test('a page of the default order or of an indexed column is one index scan, and partitions are found by their index', async () => {
  const rows = Array.from({ length: 3000 }, (_, index) =>
    order({
      orderId: `o${index}`,
      units: index,
      title: `t${index}`,
      tags: [`t${index}`],
      items: [{ name: `t${index}`, price: decimal('1') }],
    }),
  );
  await fill(orderBook, rows);
  await db.query({ text: `vacuum analyze ${readSchema}.${orderBook.tableName}` });
  const plan = async (query: Partial<PageQuery>) => {
    let explained = '';
    const explaining = {
      query: async <R extends object>(statement: { text: string; values?: readonly unknown[] }): Promise<R[]> => {
        const lines = await db.query<{ 'QUERY PLAN': string }>({
          text: `explain ${statement.text}`,
          ...(statement.values ? { values: statement.values } : {}),
        });
        explained = lines.map((line) => line['QUERY PLAN']).join('\n');
        return [];
      },
    };
    await findPage(explaining, readSchema, orderBook, { ...everything, limit: 20, ...query });
    return explained;
  };
  const byTitle: RowOrder = { column: 'title', direction: 'desc', nulls: 'last' };
  expect(await plan({ after: ['o1500'] })).toMatch(/Limit.*\n.*Index.*Scan using order_book_v1_pkey.*\n\s+Index Cond/);
  expect(await plan({ orderBy: [byTitle], after: ['t1500', 'o1500'] })).toMatch(/Index Cond/);
  expect(await plan({ orderBy: [{ ...byTitle, direction: 'asc' }], after: ['t1500', 'o1500'] })).not.toMatch(/Sort/);
  expect(await plan({ where: { kind: 'contains', column: 'title', value: 't150' } })).toMatch(/v1_title__search/);
  expect(await plan({ where: { kind: 'endsWith', column: 'title', value: 't150' } })).toMatch(/v1_title__search/);
  expect(await plan({ where: { kind: 'ilike', column: 'title', value: '%T150%' } })).toMatch(/v1_title__search/);
  expect(await plan({ where: { kind: 'holds', column: 'tags', value: ['t150'] } })).toMatch(/v1_tags/);
  expect(await plan({ where: { kind: 'holds', column: 'items', value: [{ name: 't150' }] } })).toMatch(/v1_items/);
  expect(await plan({ where: { kind: 'startsWith', column: 'title', value: 't150' } })).toMatch(/Index Cond: .*title/);
});

const everything: PageQuery = {
  where: null,
  orderBy: [],
  columns: [],
  direction: 'forward',
  limit: 1000,
  after: null,
  before: null,
};

function order(given: Row): Row {
  const empty = Object.fromEntries(Object.keys(orderBook.columns).map((name) => [name, null]));
  return { ...empty, title: '', units: 0, placedAt: '2026-01-31T12:00:00.000Z', items: [], ...given };
}

async function fill(projection: Projection, rows: readonly Row[]): Promise<void> {
  await db.query({ text: `truncate ${readSchema}.${projection.tableName}` });
  if (rows.length > 0) await createReadTable(projection, readSchema).upsert(db, rows);
}

type Walk = Pick<PageQuery, 'where' | 'orderBy' | 'direction'>;

async function walk(projection: Projection, list: Walk, limits: readonly number[]): Promise<Row[]> {
  const forward = list.direction === 'forward';
  const cursor = cursorOf(projection, list.orderBy);
  const walked: Row[] = [];
  for (let page = 0, from: Cursor | null = null; ; page++) {
    const limit = limits[page % limits.length] ?? 1;
    const found = await findPage(db, readSchema, projection, {
      ...list,
      columns: Object.keys(projection.columns),
      limit,
      after: forward ? from : null,
      before: forward ? null : from,
    });
    if (forward) walked.push(...found.rows);
    else walked.unshift(...found.rows);
    const edge = forward ? found.rows.at(-1) : found.rows[0];
    if (!edge || !(forward ? found.hasNextPage : found.hasPreviousPage)) return walked;
    from = cursor(edge);
  }
}

function showBigint(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}
