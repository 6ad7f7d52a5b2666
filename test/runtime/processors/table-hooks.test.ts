import { expect, test } from 'vitest';
import { defineConfig, defineProjection, type HookContext, type Projection, t } from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;
const step = { actor: 'ann', reason: 'a test' };

function start(projections: readonly Projection[], options: { maintain?: boolean; development?: boolean } = {}) {
  return setting.start(defineConfig({ projections, runtime: { polling: { min: 20, max: 100 } } }), {
    maintain: options.maintain ?? true,
    development: options.development ?? false,
  });
}

/** Beside each table: an index with a condition, and a view. */
function withView(change: object = {}): Projection {
  return defineProjection({
    name: 'credits',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: { Credited: (row) => ({ credits: (row?.credits ?? 0) + 1 }) },
    async setUp({ query, table, schema, tableName }: HookContext) {
      await query(`create index on ${table} (credits) where credits > 10`);
      await query(`create view ${schema}.${tableName}_busy as select * from ${table} where credits > 10`);
    },
    async tearDown({ query, schema, tableName }: HookContext) {
      await query(`drop view ${schema}.${tableName}_busy`);
    },
    ...change,
  });
}

async function views(runtime: Runtime): Promise<string[]> {
  const rows = await runtime.db.query<{ name: string }>({
    text: `select viewname as name from pg_views where schemaname = 'read_models' and viewname like '%busy' order by 1`,
  });
  return rows.map(({ name }) => name);
}

async function tables(runtime: Runtime): Promise<string[]> {
  const rows = await runtime.db.query<{ name: string }>({
    text: `select tablename as name from pg_tables where schemaname = 'read_models' order by 1`,
  });
  return rows.map(({ name }) => name);
}

/** Makes tables that are out of use due for removal. */
const graceIsOver = (runtime: Runtime) => runtime.db.query({ text: 'update refold.old_tables set drop_after = now()' });

test('setUp runs for each table of the version, and tearDown runs when the table is dropped', async () => {
  const projection = withView();
  const runtime = await start([projection]);
  expect(await views(runtime)).toEqual(['credits_v1_busy']);
  const [index] = await runtime.db.query<{ definition: string }>({
    text: `select indexdef as definition from pg_indexes where tablename = 'credits_v1' and indexdef like '%WHERE%'`,
  });
  expect(index?.definition).toContain('(credits > 10)');
  await requestRebuild(runtime.db, projection, 'read_models', step);
  expect(await views(runtime)).toEqual(['credits_v1_busy', 'credits_v1_g2_busy']);
  await until(async () => (await readRebuilds(runtime.db)).length === 0);
  await graceIsOver(runtime);
  await until(async () => (await tables(runtime)).join() === 'credits_v1_g2');
  expect(await views(runtime)).toEqual(['credits_v1_g2_busy']);
  await runtime.lifecycle.retire('credits', 1, step, 0);
  await until(async () => (await tables(runtime)).length === 0);
  expect(await views(runtime)).toEqual([]);
});

test('rows that setUp inserted are replaced by those of the log, however many there are', async () => {
  const source = createDatabase({ url: setting.database.url });
  const log = createEventLog(source, [account]);
  const streams = Array.from({ length: 700 }, (_, index) => `account-${index}`);
  await Promise.all(
    streams.map((streamId) =>
      log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount: '1' } }] }),
    ),
  );
  const projection = withView({
    setUp: async ({ query, table }: HookContext) => {
      await query(`insert into ${table} values ('account-1', 100), ('account-of-nobody', 100)`);
    },
    tearDown: undefined,
  });
  await source.close();
  const { db, versions } = await start([projection]);
  await until(async () => versions.stateOf('credits', 1) === 'active');
  const rows = await db.query({
    text: 'select credits, count(*)::int as n from read_models.credits group by 1 order by 1',
  });
  expect(rows).toEqual([
    { credits: 1, n: 700 },
    { credits: 100, n: 1 },
  ]);
});

test('a setUp that fails refuses the start with projection, hook and table, and leaves nothing behind', async () => {
  const wrong = withView({
    setUp: ({ query, table }: HookContext) => query(`create index on ${table} (credit)`).then(() => {}),
  });
  await expect(start([wrong])).rejects.toMatchObject({
    code: 'HOOK_FAILED',
    message: 'credits@1: setUp failed for the table read_models.credits_v1: column "credit" does not exist',
    fields: { projection: 'credits@1', hook: 'setUp', table: 'credits_v1' },
  });
  const idle = await start([], { maintain: false });
  expect(await tables(idle)).toEqual([]);
  expect(await idle.db.query({ text: 'select from refold.projections' })).toEqual([]);
});

test('a rebuild whose setUp fails is refused, and the version continues unchanged', async () => {
  let fails = false;
  const projection = withView({
    setUp() {
      if (fails) throw new Error('not today');
    },
    tearDown: undefined,
  });
  const runtime = await start([projection]);
  fails = true;
  await expect(requestRebuild(runtime.db, projection, 'read_models', step)).rejects.toThrow(
    'credits@1: setUp failed for the table read_models.credits_v1_g2: not today',
  );
  expect(await readRebuilds(runtime.db)).toEqual([]);
  expect(await tables(runtime)).toEqual(['credits_v1']);
});

test('a tearDown that fails keeps its table, and other tables are dropped', async () => {
  let fails = true;
  const other = withView({ name: 'other', setUp: undefined, tearDown: undefined });
  const projection = withView({
    async tearDown({ query, schema, tableName }: HookContext) {
      await query(`drop view ${schema}.${tableName}_busy`);
      if (fails) throw new Error('not today');
    },
  });
  const runtime = await start([projection, other]);
  await runtime.lifecycle.retire('credits', 1, step, 0);
  await runtime.lifecycle.retire('other', 1, step, 0);
  await until(async () => (await tables(runtime)).join() === 'credits_v1');
  expect(await views(runtime)).toEqual(['credits_v1_busy']);
  await until(
    async () =>
      (await runtime.db.query({ text: 'select from refold.old_tables where drop_after > now()' })).length === 1,
  );
  fails = false;
  await graceIsOver(runtime);
  await until(async () => (await tables(runtime)).length === 0);
  expect(await views(runtime)).toEqual([]);
});

test('in development, an edited version is torn down and set up again', async () => {
  await stop(await start([withView()], { development: true }));
  const edited = withView({ table: { accountId: t.text().primaryKey(), credits: t.integer().index() } });
  const runtime = await start([edited], { development: true });
  expect(await views(runtime)).toEqual(['credits_v1_busy']);
  expect(await tables(runtime)).toEqual(['credits_v1']);
});

test('a hook that is not a function is refused', () => {
  expect(() => withView({ setUp: 'create index' })).toThrow(
    "credits@1: 'setUp' is a function that gets { query, table, schema, tableName }.",
  );
});
