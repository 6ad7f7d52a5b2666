import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from '../support/test-database.ts';

const database = await createTestDatabase();
afterAll(() => database.drop());

test('the system run is on PostgreSQL 15', async () => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('show server_version');
  await client.end();
  expect(rows[0]?.server_version).toMatch(/^15\./);
});
