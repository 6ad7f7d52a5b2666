import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type Columns, defineEvents, defineProjection, type Projection, t } from '../../../src/index.ts';
import { textHash } from '../../../src/projections/projection/partition.ts';
import { keyText } from '../../../src/projections/projection/projection.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { checkPartitionHash, keyTextSql } from '../../../src/store/set-based/row-choice.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

const noted = defineEvents('noted', { Noted: z.object({}) });
let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  await createReadSchema(db, 'read_models');
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** Texts that PostgreSQL can store. */
const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((value) => !value.includes('\0'));

test('a key has the same hash here as in PostgreSQL', async () => {
  await checkPartitionHash(db, 'probe@1');
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 50 }), async (texts) => {
      const rows = await db.query<{ hash: string }>({
        text: `
          select (hashtext(text)::bigint & 4294967295)::text as hash
          from unnest($1::text[]) with ordinality as sample (text, number)
          order by number`,
        values: [texts],
      });
      expect(texts.map((one) => String(textHash(one)))).toEqual(rows.map(({ hash }) => hash));
    }),
  );
});

function keyed(name: string, table: Columns): Projection {
  return defineProjection({
    name,
    version: 1,
    events: noted,
    table,
    key: () => null,
    evolve: { Noted: () => null },
  });
}

test.each([
  ['text', t.text().primaryKey(), text],
  ['enum', t.enum(['a', 'b']).primaryKey(), fc.constantFrom('a', 'b')],
  ['integer', t.integer().primaryKey(), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })],
  ['bigint', t.bigint().primaryKey(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  ['bytes', t.bytes({ maxBytes: 8 }).primaryKey(), fc.uint8Array({ maxLength: 8 })],
  ['boolean', t.boolean().primaryKey(), fc.boolean()],
  ['uuid', t.uuid().primaryKey(), fc.uuid()],
  ['day', t.date().primaryKey(), fc.constantFrom('0001-01-01', '2026-02-28', '9999-12-31')],
  [
    'moment',
    t.timestamptz().primaryKey(),
    fc.constantFrom('2026-01-31T12:00:00Z', '2026-01-31T12:00:00.120Z', '1999-12-31T23:59:59.999999Z'),
  ],
] as [
  string,
  Columns[string],
  fc.Arbitrary<unknown>,
][])('the text of a key is the same here as in PostgreSQL: %s', async (kind, column, values) => {
  const withKey = keyed(`key_${kind}`, { first: column, second: t.text().primaryKey() });
  const table = createReadTable(withKey, 'read_models');
  await table.create(db);
  await fc.assert(
    fc.asyncProperty(values, text, async (first, second) => {
      await db.query({ text: `delete from read_models.${withKey.tableName}` });
      const key = withKey.codec.normaliseKey([first, second]);
      await table.upsert(db, [withKey.codec.normalise({}, key)]);
      const rows = await db.query<{ key: string }>({
        text: `select ${keyTextSql(withKey, 'stored')} as key from read_models.${withKey.tableName} as stored`,
      });
      expect(rows).toEqual([{ key: keyText(key) }]);
    }),
    { numRuns: 25 },
  );
});
