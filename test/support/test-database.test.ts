import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { createTestDatabase } from './test-database.ts';

describe('a test database', async () => {
  const database = await createTestDatabase();
  afterAll(() => database.drop());

  test('is a database of a real PostgreSQL server', async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query<{ version: string }>('select version()');
    await client.end();
    expect(rows[0]?.version).toMatch(/^PostgreSQL \d+/);
  });

  test("has Refold's own tables", async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query(`select from pg_tables where schemaname = 'refold'`);
    await client.end();
    expect(rows).not.toHaveLength(0);
  });

  test('is not dropped silently while a connection of Refold is open', async () => {
    const other = await createTestDatabase();
    const client = new pg.Client({ connectionString: other.url, application_name: 'refold worker' });
    client.on('error', () => {});
    await client.connect();
    await client.query('select 42');
    await expect(other.drop({ longestGoodbyeMs: 100 })).rejects.toThrow(
      /found:\n {2}refold worker \(idle\): select 42/,
    );
  });
});
