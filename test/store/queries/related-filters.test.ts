import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import { type RelatedFilter, type RowFilter, relatedTarget } from '../../../src/projections/queries/row-query.ts';
import { countRows, findPage } from '../../../src/store/queries/row-queries.ts';
import { createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { createReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { naivePage, sorted, type Tables } from './naive-rows.ts';
import { filtersOf, orderBook, ordersOf, rowsOf, shelfPlaces } from './order-book.ts';

const { db } = await databaseOfFile();

beforeAll(async () => {
  await createReadModelWriter(db, orderBook);
  await createReadModelWriter(db, shelfPlaces);
});

test('a filter over any relations finds the rows that a naive evaluation finds', async () => {
  const query = fc.oneof(
    ...[orderBook, shelfPlaces].map((projection) =>
      fc.record({
        projection: fc.constant(projection),
        where: acrossRelations(projection, 2),
        orderBy: ordersOf(projection),
        limit: fc.integer({ min: 0, max: 12 }),
      }),
    ),
  );
  const cases = fc.record({
    orders: rowsOf(orderBook, { maxLength: 12 }),
    places: rowsOf(shelfPlaces, { maxLength: 12 }),
    queries: fc.array(query, { minLength: 3, maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ orders, places, queries }) => {
      await fill(orderBook, orders);
      await fill(shelfPlaces, places);
      const tables: Tables = (projection) => (projection === orderBook ? orders : places);
      for (const { projection, where, orderBy, limit } of queries) {
        const columns = Object.keys(projection.columns);
        const page = { where, orderBy, columns, direction: 'forward', limit, after: null, before: null } as const;
        const rows = tables(projection);
        expect(await findPage(db, readSchema, projection, page)).toEqual(naivePage(projection, rows, page, tables));
        const matching = sorted(projection, rows, page, tables).length;
        expect(await countRows(db, readSchema, projection, where)).toBe(matching);
      }
    }),
    { numRuns: effort(30, 10) },
  );
});

const pairs = ['label', 'units', 'day'] as const;

/** Conditions over a table's rows and, `depth` relations deep, over their related rows, including rows of the same table. */
function acrossRelations(projection: Projection, depth: number): fc.Arbitrary<RowFilter> {
  const own = filtersOf(projection).filter((filter) => filter !== null);
  const related = fc.oneof(
    ...[orderBook, shelfPlaces].map(
      (target): fc.Arbitrary<RelatedFilter> =>
        fc.record({
          kind: fc.constant('related'),
          quantifier: fc.constantFrom('some', 'none', 'every'),
          target: fc.constant(relatedTarget(target)),
          columns: fc
            .subarray([...pairs], { minLength: 1, maxLength: 2 })
            .map((names) => names.map((name) => [name, name] as const)),
          filter: fc.option(depth > 1 ? acrossRelations(target, depth - 1) : filtersOf(target), { nil: null, freq: 4 }),
        }),
    ),
  );
  return fc.oneof(
    related,
    related.map((filter): RowFilter => ({ kind: 'not', filter })),
    fc.record({ kind: fc.constantFrom('and', 'or'), filters: fc.tuple(related, own) }),
  );
}

async function fill(projection: Projection, rows: readonly Row[]): Promise<void> {
  await db.query({ text: `truncate ${readSchema}.${projection.tableName}` });
  if (rows.length > 0) await createReadTable(projection, readSchema).upsert(db, rows);
}
