import { afterAll, expect, test } from 'vitest';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { type RegisteredVersion, readRegistry } from '../../../src/store/registry/registry.ts';
import { readMarkedRegistry, readRegistryMark } from '../../../src/store/registry/registry-mark.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';

const { database } = await databaseOfFile();
// Takes back what it changes, constraints too.
const superuser = createDatabase({ url: database.superuserUrl, maxConnections: 1 });
afterAll(() => superuser.close());

const tables = ['projections', 'processors', 'inline_versions', 'canaries', 'shadows'] as const;

await superuser.query({
  text: `
    insert into refold.projections (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
    values ('cart', 1, 'ready', 'read_models', 'cart_v1', 'a', 'b', '{}')`,
});
for (const text of [
  `insert into refold.processors (name, version) values ('cart', 1)`,
  `insert into refold.inline_versions (name, version, families, lock_key) values ('cart', 1, '{cart}', 1)`,
  `insert into refold.canaries (name, version, percent) values ('cart', 1, 5)`,
  `insert into refold.shadows (name, version, one_of) values ('cart', 1, 10)`,
])
  await superuser.query({ text });

const columns = await superuser.query<{ table: string; column: string; type: string }>({
  text: `
    select relname as table, attname as column, format_type(atttypid, null) as type
    from pg_attribute
    join pg_class on pg_class.oid = attrelid
    where relnamespace = 'refold'::regnamespace and relname = any ($1) and attnum > 0 and not attisdropped and attname not in ('name', 'version')
    order by relname, attnum`,
  values: [tables],
});

/** What a process acts on: everything but what each batch writes. */
function withoutBatches(versions: readonly RegisteredVersion[]): string {
  const written = ['eventsFolded', 'eventsSkipped', 'retries', 'retrying', 'startedAt', 'updatedAt', 'floors'];
  const replaced = (key: string, value: unknown) => {
    if (written.includes(key) || key === 'checkpoint' || key === 'owner') return undefined;
    if (typeof value === 'bigint') return value.toString();
    return key === 'status' ? value === 'stopped' : value;
  };
  return JSON.stringify(versions, replaced);
}

/** Another value of a column, whatever it has. */
function changed(table: string, column: string, type: string): string {
  if (`${table}.${column}` === 'processors.status') return `'stopped'`;
  switch (type) {
    case 'text':
      return `coalesce(${column}, '') || 'x'`;
    case 'text[]':
      return `array['x']`;
    case 'jsonb':
      return `coalesce(${column}, '{}') || '{"code": "TABLE_ALTERED", "startAfter": "7"}'`;
    case 'timestamp with time zone':
      return `coalesce(${column}, now()) + interval '1 minute'`;
    default:
      return `coalesce(${column}, 0) + 1`;
  }
}

const named = columns.map((column) => [`${column.table}.${column.column}`, column] as const);

test.each(named)('the mark differs if %s makes the registry differ', async (_name, { table, column, type }) => {
  const before = [withoutBatches(await readRegistry(superuser)), await readRegistryMark(superuser)] as const;
  const rollback = new Error('taken back');
  const attempt = superuser.transaction(async (tx) => {
    const checks = await tx.query<{ name: string }>({
      text: `select conname as name from pg_constraint where conrelid = $1::regclass and contype = 'c'`,
      values: [`refold.${table}`],
    });
    for (const { name } of checks) await tx.query({ text: `alter table refold.${table} drop constraint ${name}` });
    await tx.query({ text: `update refold.${table} set ${column} = ${changed(table, column, type)}` });
    const [registry, mark] = [withoutBatches(await readRegistry(tx)), await readRegistryMark(tx)];
    if (registry !== before[0]) expect(mark).not.toBe(before[1]);
    throw rollback;
  });
  await expect(attempt).rejects.toBe(rollback);
});

test('the mark differs if two versions exchange what they have', async () => {
  const percent = (name: string, value: number) =>
    superuser.query({ text: 'update refold.canaries set percent = $2 where name = $1', values: [name, value] });
  await superuser.query({
    text: `
      insert into refold.projections (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
      values ('order', 1, 'ready', 'read_models', 'order_v1', 'a', 'b', '{}')`,
  });
  await superuser.query({ text: `insert into refold.canaries (name, version, percent) values ('order', 1, 50)` });
  const before = await readRegistryMark(superuser);
  await percent('order', 5);
  await percent('cart', 50);
  expect(await readRegistryMark(superuser)).not.toBe(before);
});

test('the registry is read with the mark that it has', async () => {
  const { mark, versions } = await readMarkedRegistry(superuser);
  expect(mark).toBe(await readRegistryMark(superuser));
  expect(versions).toEqual(await readRegistry(superuser));
});

test('the mark stays the same while batches move the checkpoint', async () => {
  const before = await readRegistryMark(superuser);
  await superuser.query({
    text: `
      update refold.processors
      set checkpoint = checkpoint + 1, owner = 'a', status = 'running', events_folded = events_folded + 1, updated_at = now()`,
  });
  expect(await readRegistryMark(superuser)).toBe(before);
});
