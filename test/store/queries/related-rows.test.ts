import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Column } from '../../../src/projections/columns/column.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import type { RowFilter, RowOrder } from '../../../src/projections/queries/row-query.ts';
import { countRelatedRows, findRelatedPages } from '../../../src/store/queries/related-rows.ts';
import { createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { createReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { compareValues, naivePage } from './naive-rows.ts';
import { filtersOf, orderBook, ordersOf, rowsOf, scalarColumns, shelfPlaces, valuesOf } from './order-book.ts';

const { db } = await databaseOfFile();

beforeAll(async () => {
  await createReadModelWriter(db, orderBook);
  await createReadModelWriter(db, shelfPlaces);
});

describe.each([
  ['one key column', orderBook],
  ['three key columns', shelfPlaces],
])('Rows of a table with %s that name others', (_, projection) => {
  test('are, for each of them, the page and the count of a naive evaluation', async () => {
    const cases = fc.record({
      rows: rowsOf(projection, { maxLength: 30 }),
      reads: fc.array(readsOf(projection), { minLength: 1, maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ rows, reads }) => {
        await db.query({ text: `truncate ${readSchema}.${projection.tableName}` });
        if (rows.length > 0) await createReadTable(projection, readSchema).upsert(db, rows);
        for (const { column, values, query } of reads) {
          const naming = (value: unknown) => rows.filter((row: Row) => compareValues(row[column], value) === 0);
          expect(await findRelatedPages(db, readSchema, projection, column, values, query)).toEqual(
            values.map((value) => naivePage(projection, naming(value), query)),
          );
          const all = { ...query, after: null, before: null, limit: 1000 };
          const counts = values.map((value) => naivePage(projection, naming(value), all).rows.length);
          expect(await countRelatedRows(db, readSchema, projection, column, values, query.where)).toEqual(counts);
          const upTo = query.limit + 1;
          expect(await countRelatedRows(db, readSchema, projection, column, values, query.where, upTo)).toEqual(
            counts.map((count) => Math.min(count, upTo)),
          );
        }
      }),
      { numRuns: effort(100, 30) },
    );
  });
});

test('each page is an index scan of the referencing column', async () => {
  let text = '';
  const explaining = {
    query: async <R extends object>(statement: { text: string; values?: readonly unknown[] }): Promise<R[]> => {
      const lines = await db.query<{ 'QUERY PLAN': string }>({
        text: `explain ${statement.text}`,
        ...(statement.values ? { values: statement.values } : {}),
      });
      text = lines.map((line) => line['QUERY PLAN']).join('\n');
      return [];
    },
  };
  await db.query({ text: `truncate ${readSchema}.${shelfPlaces.tableName}` });
  const rows = Array.from({ length: 3000 }, (_, shelf) => {
    return { shop: 'a', shelf, day: '2026-01-31', label: `l${shelf % 100}`, units: 1 };
  });
  await createReadTable(shelfPlaces, readSchema).upsert(db, rows);
  await db.query({ text: `vacuum analyze ${readSchema}.${shelfPlaces.tableName}` });
  await findRelatedPages(explaining, readSchema, shelfPlaces, 'label', ['l1', 'l2'], {
    where: null,
    orderBy: [],
    columns: ['units'],
    direction: 'forward',
    limit: 5,
    after: null,
    before: null,
  });
  expect(text).toMatch(/Index.* Cond: \("left"\(label, 256\) = "left"\(parents\.value, 256\)\)/);
});

function readsOf(projection: Projection) {
  const named = fc.constantFrom(...scalarColumns(projection));
  return fc.tuple(named, ordersOf(projection)).chain(([column, orderBy]: [string, RowOrder[]]) => {
    const value = (name: string) => valuesOf(projection.columns[name] as Column); // it is declared
    const ordered = [...orderBy.map((order) => order.column), ...projection.keyColumns];
    const cursor = fc.tuple(...ordered.map(value));
    return fc.record({
      column: fc.constant(column),
      values: fc.array(
        value(column).filter((given) => given !== null),
        { minLength: 1, maxLength: 5 },
      ),
      query: fc.record({
        where: filtersOf(projection) as fc.Arbitrary<RowFilter | null>,
        orderBy: fc.constant(orderBy),
        columns: fc.constant(Object.keys(projection.columns)),
        direction: fc.constantFrom('forward' as const, 'backward' as const),
        limit: fc.integer({ min: 0, max: 6 }),
        after: fc.option(cursor, { nil: null, freq: 2 }),
        before: fc.option(cursor, { nil: null, freq: 2 }),
      }),
    });
  });
}
