import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from '../support/test-database.ts';

const database = await createTestDatabase();
afterAll(() => database.drop());

test('the system run is on PostgreSQL 15, which compiles expensive statements', async () => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<{ version: string; jit: boolean }>(
    "select current_setting('server_version') as version, pg_jit_available() as jit",
  );
  await client.end();
  expect(rows).toEqual([{ version: expect.stringMatching(/^15\./), jit: true }]);
});
