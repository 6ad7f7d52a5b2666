import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { dropLater, dropNever, dropOldTables } from '../../../src/store/tables/old-tables.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase({ role: 'superuser' }); // makes tables of its own
  db = createDatabase({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

async function oldTable(name: string): Promise<void> {
  await db.query({ text: `create table public.${name} (id int)` });
  await dropLater(db, 'public', name, 0);
}

async function exists(name: string): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>({
    text: 'select to_regclass($1) is not null as found',
    values: [`public.${name}`],
  });
  return row?.found === true;
}

test('an old table that a query still reads is dropped by a later run, and delays no other table', async () => {
  await oldTable('read_on');
  await oldTable('unread');
  await db.transaction(async (reader) => {
    await reader.query({ text: 'select from public.read_on' });
    expect(await dropOldTables(db)).toEqual(['unread']);
  });
  expect(await dropOldTables(db)).toEqual(['read_on']);
  expect(await exists('read_on')).toBe(false);
});

test('a table is not forgotten when the process that drops it dies in the middle', async () => {
  await oldTable('outlives');
  await db.query({
    text: `
      create function kill_who_drops() returns event_trigger language plpgsql as $$
      begin
        perform pg_terminate_backend(pg_backend_pid());
      end $$`,
  });
  await db.query({
    text: `create event trigger lost on ddl_command_end when tag in ('DROP TABLE') execute function kill_who_drops()`,
  });
  await expect(dropOldTables(db)).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  await db.query({ text: 'drop event trigger lost' });
  // Its session may keep its lock for a moment after reporting its end.
  await until(async () => (await dropOldTables(db)).includes('outlives'));
  expect(await exists('outlives')).toBe(false);
});

test('a process that saw a table as old does not drop it after its name is in use again', async () => {
  await oldTable('reborn');
  // A rebuild does this. A process that drops old tables at the same time comes too early or too late.
  const reborn = db.transaction(async (tx) => {
    await dropNever(tx, 'public', 'reborn');
    await tx.query({ text: 'drop table if exists public.reborn' });
    await tx.query({ text: 'create table public.reborn (id int)' });
    expect(await dropOldTables(db)).toEqual([]);
  });
  await reborn;
  await until(async () => (await dropOldTables(db)).length === 0);
  expect(await exists('reborn')).toBe(true);
});
