import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { checkSessions } from '../../../src/store/server/session-check.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let databases: TestDatabase[];
let one: Database;
let other: Database;

beforeAll(async () => {
  databases = [await createTestDatabase(), await createTestDatabase()];
  [one, other] = databases.map(({ url }) => createDatabase({ url })) as [Database, Database];
});
afterAll(async () => {
  for (const db of [one, other]) await db.close();
  for (const database of databases) await database.drop();
});

test('a server with working locks is accepted, and the check leaves nothing behind', async () => {
  await checkSessions(one, { sessions: true });
  const locks = await one.query({
    text: `
      select
      from pg_locks
      where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  });
  expect(locks).toEqual([]);
});

test('a check that gets no second connection releases the first one', async () => {
  const single = createDatabase({ url: one.url, maxConnections: 1, connectTimeoutMs: 200 });
  await expect(checkSessions(single, { sessions: true })).rejects.toThrow();
  await single.close(); // waits for every connection that was not released
});

test('an address with two servers behind it is refused: one server does not see the locks of the other', async () => {
  const sessions = [one, other];
  const balanced = { url: one.url, session: () => (sessions.shift() as Database).session() };
  await expect(checkSessions(balanced, { sessions: true })).rejects.toMatchObject({
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringContaining(
      'an advisory lock of one connection is not visible to another one, so events could be lost. Connect to one PostgreSQL server',
    ),
  });
});
