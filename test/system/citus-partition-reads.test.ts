import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { aggregateRows } from '../../src/store/queries/aggregate-rows.ts';
import { matchFilters } from '../../src/store/queries/live-queries.ts';
import { countRows, findByKeys, findPage } from '../../src/store/queries/row-queries.ts';
import { createReadSchema, createReadTable } from '../../src/store/tables/read-table.ts';
import { scanTable } from '../../src/store/tables/table-scan.ts';
import { naiveAggregates } from '../store/queries/naive-aggregates.ts';
import { matches, naivePage, sorted } from '../store/queries/naive-rows.ts';
import { filtersOf, orderBook, rowsOf, shelfPlaces } from '../store/queries/order-book.ts';
import { aggregatesOf, pagesOf } from '../store/queries/random-queries.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import { effort } from '../support/effort.ts';
import { inPartitions } from '../support/sample-domain.ts';

// What clients read of rows that are distributed over the workers of a Citus cluster.
const cluster = await startCitusCluster();
const placement = 'partition';
const url = await cluster.createStore(placement);
const elsewhere = { log: undefined, storesOf: () => [], others: () => [], placement } as const;
const db = createDatabase({ url, elsewhere });
const readSchema = 'read_models';
await createReadSchema(db, readSchema);
afterAll(async () => {
  await db.close();
  await cluster.stop();
});

async function fill(projection: Projection, rows: readonly Row[]): Promise<void> {
  await db.query({ text: `truncate ${readSchema}.${projection.tableName}` });
  if (rows.length > 0) await db.transaction((tx) => createReadTable(projection, readSchema).insert(tx, rows));
  if (rows.length > 0) await createReadTable(projection, readSchema).upsert(db, rows);
}

test.each([
  ['one key column', inPartitions(orderBook, 4)],
  ['three key columns', inPartitions(shelfPlaces, 4)],
])('reads of a distributed table with %s equal a naive evaluation, for any rows and queries', async (_, projection) => {
  const columns = Object.keys(projection.columns);
  const keyOf = (row: Row) => projection.keyColumns.map((name) => row[name]);
  const table = createReadTable(projection, readSchema);
  await table.create(db);
  await table.createIndexes(db);
  const cases = fc.record({
    rows: rowsOf(projection, { maxLength: 30 }),
    strangers: rowsOf(projection, { maxLength: 4 }),
    pages: fc.array(pagesOf(projection), { minLength: 1, maxLength: 8 }),
    aggregates: fc.array(aggregatesOf(projection), { minLength: 1, maxLength: 8 }),
    filters: fc.array(filtersOf(projection), { minLength: 1, maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ rows, strangers, pages, aggregates, filters }) => {
      await fill(projection, rows);
      for (const page of pages) {
        expect(await findPage(db, readSchema, projection, page)).toEqual(naivePage(projection, rows, page));
        const matching = sorted(projection, rows, page).length;
        expect(await countRows(db, readSchema, projection, page.where)).toBe(matching);
        expect(await countRows(db, readSchema, projection, page.where, 3)).toBe(Math.min(matching, 3));
      }
      for (const query of aggregates)
        expect(await aggregateRows(db, readSchema, projection, query)).toEqual(
          naiveAggregates(projection, rows, query),
        );
      const byKey = new Map(rows.map((row) => [JSON.stringify(keyOf(row)), row]));
      const keys = [...strangers, ...rows].map(keyOf);
      const found = keys.map((key) => byKey.get(JSON.stringify(key)) ?? null);
      expect(await findByKeys(db, readSchema, projection, keys, columns)).toEqual(found);
      const some = rows.slice(0, 3);
      expect(await matchFilters(db, readSchema, projection, some.map(keyOf), filters)).toEqual(
        filters.map((filter) => some.some((row) => matches(filter, row))),
      );
      const scanned: Row[] = [];
      for await (const page of scanTable(db, readSchema, projection, { pageSize: 7 })) scanned.push(...page);
      expect(scanned).toHaveLength(rows.length);
      await table.remove(db, some.map(keyOf));
      expect(await countRows(db, readSchema, projection, null)).toBe(rows.length - some.length);
    }),
    { numRuns: effort(40, 8) },
  );
});

test('a read by key names the partition, so one worker runs it', async () => {
  const projection = inPartitions(orderBook, 4);
  let plan = '';
  const explaining = {
    elsewhere,
    async query<R extends object>(statement: {
      readonly text: string;
      readonly values?: readonly unknown[];
    }): Promise<R[]> {
      const { text, values } = statement;
      const lines = await db.query<Record<string, string>>({ text: `explain ${text}`, ...(values ? { values } : {}) });
      plan = lines.map((line) => line['QUERY PLAN']).join('\n');
      return [];
    },
  };
  await findByKeys(explaining, readSchema, projection, [['a']], ['title']);
  expect(plan).toContain('Task Count: 1');
  await createReadTable(projection, readSchema).load(explaining, [['a']]);
  expect(plan).toContain('Task Count: 1');
});
