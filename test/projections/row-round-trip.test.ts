import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection } from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createReadSchema, createReadTable } from '../../src/store/read-table.ts';
import { anyRow, everyColumn } from '../support/every-column.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

const projection = defineProjection({
  name: 'every_column',
  version: 1,
  events: defineEvents('thing', { ThingMade: z.object({}) }),
  table: everyColumn,
  key: (event) => event.streamId,
  evolve: { ThingMade: () => null },
});
const readSchema = 'read_models';
const table = createReadTable(projection, readSchema);

let testDatabase: TestDatabase;
let db: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url });
  await createReadSchema(db, readSchema);
  await table.create(db);
});

afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});

test('PostgreSQL gives back every row as it was in memory, down to the order of keys in JSON', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRow, { minLength: 1, maxLength: 20 }), async (rows) => {
      const normal = rows.map((row, index) => projection.codec.normalise(row, [String(index)]));
      await table.upsert(db, normal);
      const keys = normal.map((row) => table.keyOf(row));
      const loaded = await table.load(db, keys);
      const byId = new Map(loaded.map((row) => [row.id, row]));
      for (const row of normal) {
        expect(byId.get(row.id)).toEqual(row);
        expect(JSON.stringify(byId.get(row.id)?.json)).toBe(JSON.stringify(row.json));
      }
      await table.remove(db, keys);
      expect(await table.load(db, keys)).toEqual([]);
    }),
    { numRuns: 100 },
  );
});
