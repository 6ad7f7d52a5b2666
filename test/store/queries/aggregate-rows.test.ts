import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { decimal } from '../../../src/projections/columns/decimal.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import type { AggregateQuery, Measure } from '../../../src/projections/queries/row-query.ts';
import { aggregateRows } from '../../../src/store/queries/aggregate-rows.ts';
import { createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { createReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { naiveAggregates } from './naive-aggregates.ts';
import { orderBook, rowsOf, shelfPlaces } from './order-book.ts';
import { aggregatesOf } from './random-queries.ts';

const { db } = await databaseOfFile();

beforeAll(async () => {
  await createReadModelWriter(db, orderBook);
  await createReadModelWriter(db, shelfPlaces);
});

describe.each([
  ['one key column', orderBook],
  ['three key columns', shelfPlaces],
])('Aggregates of a table with %s', (_, projection) => {
  test('equal a naive evaluation, for any rows, filter, groupings, conditions and order', async () => {
    const cases = fc.record({
      rows: rowsOf(projection, { maxLength: 30 }),
      queries: fc.array(aggregatesOf(projection), { minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ rows, queries }) => {
        await fill(projection, rows);
        for (const query of queries) {
          const found = await aggregateRows(db, readSchema, projection, query);
          expect(found).toEqual(naiveAggregates(projection, rows, query));
        }
      }),
      { numRuns: effort(150, 40) },
    );
  });
});

test('an average is rounded half away from zero, for any number of digits', async () => {
  const avg = { kind: 'avg', column: 'amount' } as const;
  const averageOf = async (...amounts: string[]) => {
    await fill(
      orderBook,
      amounts.map((amount, index) => order({ orderId: String(index), amount: decimal(amount) })),
    );
    const [row] = await aggregateRows(db, readSchema, orderBook, { ...everything, measures: [avg] });
    return String(row?.measures[0]);
  };
  expect(await averageOf('999999999999.99', '999999999999.98', '999999999999.98')).toBe('999999999999.983333');
  expect(await averageOf('0.01', ...Array.from({ length: 31 }, () => '0'))).toBe('0.000313');
  expect(await averageOf('-0.01', ...Array.from({ length: 31 }, () => '0'))).toBe('-0.000313');
});

test('a sum of bigints may exceed the range of a bigint', async () => {
  await fill(
    orderBook,
    ['a', 'b'].map((orderId) => order({ orderId, total: 2n ** 63n - 1n })),
  );
  const measures: Measure[] = [{ kind: 'sum', column: 'total' }];
  expect(await aggregateRows(db, readSchema, orderBook, { ...everything, measures })).toEqual([
    { key: [], measures: [2n ** 64n - 2n] },
  ]);
});

test('a measure or grouping that a column does not have is a client error', async () => {
  const mistakes: readonly Partial<AggregateQuery>[] = [
    { measures: [{ kind: 'sum', column: 'title' }] },
    { measures: [{ kind: 'max', column: 'token' }] },
    { measures: [{ kind: 'countDistinct', column: 'items' }] },
    { measures: [{ kind: 'min', column: 'nothing' }] },
    { groupBy: [{ column: 'title', bucket: 'day' }] },
    { groupBy: [{ column: 'day', bucket: 'hour' }] },
    { having: [{ measure: { kind: 'count' }, operator: 'gt', value: 'many' }] },
    { having: [{ measure: { kind: 'max', column: 'day' }, operator: 'gt', value: 'today' }] },
  ];
  for (const mistake of mistakes) {
    await expect(
      aggregateRows(db, readSchema, orderBook, { ...everything, ...mistake }),
      JSON.stringify(mistake),
    ).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  }
});

const everything: AggregateQuery = {
  where: null,
  groupBy: [],
  measures: [],
  having: [],
  orderBy: [],
  limit: null,
};

function order(given: Row): Row {
  const empty = Object.fromEntries(Object.keys(orderBook.columns).map((name) => [name, null]));
  return { ...empty, title: '', units: 0, placedAt: '2026-01-31T12:00:00.000Z', items: [], ...given };
}

async function fill(projection: Projection, rows: readonly Row[]): Promise<void> {
  await db.query({ text: `truncate ${readSchema}.${projection.tableName}` });
  if (rows.length > 0) await createReadTable(projection, readSchema).upsert(db, rows);
}
