import { sql } from 'kysely';
import { afterAll, expect, expectTypeOf, test } from 'vitest';
import { parsedTypes } from '../../../scripts/table-types.ts';
import type { GlobalPosition } from '../../../src/events/global-position.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { refoldTables, run, runForOne } from '../../../src/store/statements/statement.ts';
import { createTestDatabase } from '../../support/test-database.ts';

const database = await createTestDatabase();
const db = createDatabase({ url: database.url });
afterAll(async () => {
  await db.close();
  await database.drop();
});

const samples: Readonly<Record<string, unknown>> = {
  bool: true,
  bytea: Buffer.from([0, 255]),
  date: '2026-02-28',
  float8: 0.25,
  int2: 3,
  int4: 4,
  int8: 2n ** 62n,
  json: { of: ['any', 'shape'] },
  jsonb: { of: ['any', 'shape'] },
  text: 'a "text"',
  timestamptz: '2026-02-28T12:00:00.125Z',
  uuid: '00000000-0000-4000-8000-000000000000',
  varchar: 'a text',
  _text: ['a', 'b "c"'],
};

test('values have the types that the tables are generated with', async () => {
  expect(Object.keys(samples).sort()).toEqual(Object.keys(parsedTypes).sort());
  for (const [type, sample] of Object.entries(samples)) {
    const bound = type.startsWith('json') ? JSON.stringify(sample) : sample;
    const { value } = await runForOne(
      db,
      sql<{ value: unknown }>`select ${bound}::${sql.raw(type === '_text' ? 'text[]' : type)} as value`,
    );
    expect(value).toEqual(sample);
    expect(typeNameOf(value)).toBe(parsedTypes[type]);
  }
});

function typeNameOf(value: unknown): string {
  if (Buffer.isBuffer(value)) return 'Buffer';
  if (Array.isArray(value)) return 'string[]';
  return typeof value === 'object' ? 'unknown' : typeof value; // JSON may be anything
}

test('a statement of the builder knows the types of its rows, and JSON and arrays come back as they were written', async () => {
  await run(
    db,
    refoldTables.insertInto('refold.projections').values({
      name: 'parcel',
      version: 1,
      state: 'building',
      table_schema: 'read_models',
      table_name: 'parcel_v1',
      table_fingerprint: 'a',
      code_fingerprint: 'b',
      definition: '{}',
    }),
  );
  const key = ['Utrecht "NL"', '7'];
  await run(
    db,
    refoldTables.insertInto('refold.dead_letters').values({
      name: 'parcel',
      version: 1,
      table_name: 'parcel_v1',
      key: JSON.stringify(key),
      position: 7n as GlobalPosition, // a position of no event
      event_type: 'Sent',
      stream_id: 'a',
    }),
  );
  const [letter] = await run(
    db,
    refoldTables
      .selectFrom('refold.dead_letters')
      .select(['id', 'key', 'position', 'error', 'attempts'])
      .where('key', '=', sql<typeof key>`${JSON.stringify(key)}::jsonb`),
  );
  expect(letter).toEqual({ id: 1n, key, position: 7n, error: null, attempts: 1 });
  expectTypeOf(letter?.position).toEqualTypeOf<GlobalPosition | undefined>();
  const families = ['a', 'b "c"'];
  await run(
    db,
    refoldTables.insertInto('refold.inline_versions').values({ name: 'parcel', version: 1, families, lock_key: 5 }),
  );
  const [inline] = await run(db, refoldTables.selectFrom('refold.inline_versions').selectAll());
  const byDefault = { types: [], unique_columns: null, rule: null, changed_at: expect.any(String) };
  const parcel = { name: 'parcel', version: 1, status: 'building', families, lock_key: 5n, passed_at: null };
  expect(inline).toEqual({ ...parcel, ...byDefault });
  expectTypeOf(inline?.status).toEqualTypeOf<'building' | 'live' | undefined>();
});
