import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection } from '../../../src/index.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { anyRow, everyColumn } from '../../support/every-column.ts';

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

const { db } = await databaseOfFile();

beforeAll(async () => {
  await createReadSchema(db, readSchema);
  await table.create(db);
});

test('PostgreSQL returns every row as it was in memory, upserted or copied, down to the order of keys in JSON', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRow, { minLength: 1, maxLength: 20 }), fc.boolean(), async (rows, copied) => {
      const normal = rows.map((row, index) => projection.codec.normalise(row, [String(index)]));
      await (copied ? db.transaction((tx) => table.insert(tx, normal)) : table.upsert(db, normal));
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
    { numRuns: effort(100, 30) },
  );
});

test('a copy of rows that exist already, or whose source fails, fails and leaves the connection usable', async () => {
  const [row] = fc.sample(anyRow, 1);
  const rows = Array.from({ length: 2000 }, (_, index) => projection.codec.normalise(row ?? {}, [String(index)]));
  await db.transaction((tx) => table.insert(tx, rows));
  const again = db.transaction((tx) => table.insert(tx, rows));
  await expect(again).rejects.toMatchObject({ code: 'DATABASE_ERROR', fields: { sqlState: '23505' } });
  const unmade = db.transaction((tx) =>
    tx.copyInto(
      'copy read_models.every_column_v1 from stdin',
      (function* () {
        yield '\\N\t';
        throw new Error('no more of it');
      })(),
    ),
  );
  await expect(unmade).rejects.toThrow('no more of it');
  expect(await table.load(db, [['7']])).toEqual([rows[7]]);
  await table.remove(
    db,
    rows.map((one) => table.keyOf(one)),
  );
});
