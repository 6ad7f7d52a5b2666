import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineConfig, defineImport, defineReactor } from '../../src/index.ts';
import { importEvents } from '../../src/runtime/commands/import-events.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { restoreSnapshot } from '../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { startRuntime } from '../../src/runtime/runtime.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRebuilds } from '../../src/store/registry/rebuilds.ts';
import type { Queryable, Statement } from '../../src/store/statements/statement.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { inlineBalance, inlineOpenings } from '../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  open,
  statusOf,
  untilLive,
} from '../support/inline-setting.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let setting: InlineSetting;
let db: Database;
let name: string;

beforeAll(async () => {
  setting = await createInlineSetting();
  db = createDatabase({ url: setting.database.url });
  name = new URL(setting.database.url).pathname.slice(1);
});
afterAll(async () => {
  await db.close();
  await setting.close();
});

/** The cost of every plan that a session has run, including those of functions, from the most expensive down. */
async function costs(client: pg.Client, work: () => Promise<unknown>): Promise<{ cost: number; plan: string }[]> {
  const plans: { cost: number; plan: string }[] = [];
  client.on('notice', ({ message = '' }) => {
    const cost = /cost=[\d.]+\.\.([\d.]+)/.exec(message)?.[1];
    if (cost !== undefined) plans.push({ cost: Number(cost), plan: message });
  });
  await client.query(`
    load 'auto_explain';
    set auto_explain.log_min_duration = 0;
    set auto_explain.log_nested_statements = on;
    set auto_explain.log_level = notice`);
  await work();
  return plans.sort((a, b) => b.cost - a.cost);
}

test('no statement of an append has a plan expensive enough for JIT, in foreign sessions either', async () => {
  const runtime = await setting.start([inlineBalance, inlineOpenings]);
  await untilLive(runtime, inlineBalance, inlineOpenings);
  await open(runtime, 'account-1');
  const client = new pg.Client({ connectionString: setting.database.superuserUrl }); // who may load auto_explain
  await client.connect();
  const tx: Queryable = {
    query: async <Row extends object>({ text, values }: Statement) =>
      (await client.query<Row>(text, values as unknown[])).rows, // pg does not change its arguments
  };
  const plans = await costs(client, async () => {
    await client.query('set enable_seqscan = off; begin');
    await runtime.log.append({ ...creditOf('account-1'), idempotencyKey: 'once' }, tx);
    await runtime.log.append({ ...creditOf('account-1'), idempotencyKey: 'once' }, tx);
    await client.query('commit');
    await client.query("select * from refold.read_tail(0, '{account.Credited}', 10)");
    await client.query("select * from refold.recent_changes('inline_balance', 1, '{0}', 10)");
    await client.query('select * from refold.lag');
  });
  await client.end();
  // By default, a server uses JIT from a cost of 100,000 on.
  expect(plans.filter(({ cost }) => cost > 10_000)).toEqual([]);
  expect(plans.some(({ plan }) => plan.includes('refold.inline_versions'))).toBe(true);
});

test('no planner switch makes the server compile a statement of refold.append, in foreign sessions either', async () => {
  const runtime = await setting.start([inlineBalance, inlineOpenings]);
  await untilLive(runtime, inlineBalance, inlineOpenings);
  await open(runtime, 'account-3');
  const { rows: switches } = await db.pool.query<{ name: string }>(
    "select name from pg_settings where name like 'enable\\_%' and vartype = 'bool' order by name",
  );
  const compiled: string[] = [];
  for (const { name: planner } of switches) {
    const client = new pg.Client({ connectionString: setting.database.superuserUrl });
    await client.connect();
    const tx: Queryable = {
      query: async <Row extends object>({ text, values }: Statement) =>
        (await client.query<Row>(text, values as unknown[])).rows, // pg does not change its arguments
    };
    const plans = await costs(client, async () => {
      await client.query(`set ${planner} = off; begin`);
      const append = { ...creditOf('account-3'), idempotencyKey: planner };
      await runtime.log.append(append, tx);
      await runtime.log.append(append, tx);
      const refused = { ...creditOf('account-3'), expectedVersion: 1_000 } as const;
      await expect(runtime.log.append(refused, tx)).rejects.toMatchObject({ code: 'CONCURRENCY_CONFLICT' });
      await client.query('rollback');
    });
    expect(plans.some(({ plan }) => plan.includes('refold.events'))).toBe(true);
    compiled.push(...plans.filter(({ plan }) => plan.includes('JIT:')).map(({ plan }) => `${planner}: ${plan}`));
    await client.end();
  }
  expect(switches.length).toBeGreaterThan(10);
  expect(compiled).toEqual([]);
});

const defaults = {
  default_transaction_isolation: 'repeatable read',
  lock_timeout: '1ms',
  idle_in_transaction_session_timeout: '1ms',
  // They apply before anything can be set; they are long enough to be overridden in time on the slowest machine.
  statement_timeout: '60s',
  idle_session_timeout: '60s',
  work_mem: '64kB',
  search_path: 'nowhere',
  timezone: 'Asia/Kathmandu',
  datestyle: 'German, DMY',
  intervalstyle: 'postgres_verbose',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
};

/** Sets them for new sessions of `whom`: a role or a database. */
async function setDefaults(run: (statement: string) => Promise<unknown>, whom: string): Promise<void> {
  for (const [setting, value] of Object.entries(defaults)) await run(`alter ${whom} set ${setting} = '${value}'`);
}

test('an application works with any defaults of its role or database', async () => {
  await setDefaults(setting.database.administer, `database ${name}`);
  const limits = ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout'];
  const { promise: slow, resolve: go } = Promise.withResolvers<void>();
  const runtime = await setting.start([inlineBalance, inlineOpenings, balanceV1]);
  await untilLive(runtime, inlineBalance, inlineOpenings);
  const { position } = await open(runtime, 'account-2');
  // A stream that another transaction holds, idle, for longer than the shortest of the limits.
  const { promise: locked, resolve: hasLocked } = Promise.withResolvers<void>();
  const held = db.transaction(async (tx) => {
    await tx.query({ text: "select from refold.streams where stream_id = 'account-2' for update" });
    hasLocked();
    await slow;
  });
  await locked;
  const waiting = runtime.log.append(creditOf('account-2'));
  await until(async () => {
    const [row] = await db.query<{ waits: boolean }>({
      text: `select exists (
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and now() - query_start > interval '100 ms'
      ) as waits`,
    });
    return row?.waits === true;
  });
  go();
  const set = await runtime.db.query({
    text: 'select distinct current_setting(name) as value from unnest($1::text[]) name',
    values: [limits],
  });
  expect(set).toEqual([{ value: '0' }]);
  await Promise.all([held, waiting, traffic(runtime.log, 200, seeded(5))]);
  await runtime.positions.waitFor(balanceV1, position, { timeout: 300_000 });
  await until(async () => (await statusOf(runtime, balanceV1))?.lag === 0n);
  for (const projection of [inlineBalance, inlineOpenings, balanceV1]) await expectRight(runtime, projection);
  expect(await statusOf(runtime, inlineBalance)).toMatchObject({ inline: 'live' });
});

test('a transaction works with any defaults where no session setting can be used', async () => {
  await setDefaults(setting.database.administer, `database ${name}`);
  const shared = createDatabase({ url: setting.database.url, sessions: false });
  const found = await shared.transaction((tx) =>
    tx.query({
      text: String.raw`
        select
          current_setting('transaction_isolation') as isolation,
          $1::text[] = array['a', null] as nulls,
          length('\n') as backslash,
          '\x00ff'::bytea::text as bytes`,
      values: [['a', null]],
    }),
  );
  await shared.close();
  expect(found).toEqual([{ isolation: 'read committed', nulls: true, backslash: 2, bytes: '\\x00ff' }]);
});

const openings = defineImport({
  name: 'openings',
  async *toAppends(lines) {
    for await (const { text: id } of lines)
      yield {
        family: account,
        streamId: id,
        events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
        idempotencyKey: id,
      };
  },
});

test('rebuilds, snapshots, imports, reactors and change feeds work with any defaults of the role', async () => {
  const database = await createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'refold-defaults-'));
  const file = join(folder, 'openings.txt');
  await writeFile(file, Array.from({ length: 300 }, (_, number) => `imported-${number}`).join('\n'));
  const admin = createDatabase({ url: database.url });
  const role = `role current_user in database ${new URL(database.url).pathname.slice(1)}`;
  await setDefaults((text) => admin.query({ text }), role);
  await admin.close();
  const handled = new Set<string>();
  const listener = defineReactor({
    name: 'listener',
    events: account,
    from: 'beginning',
    handle: { Opened: async ({ streamId }) => void handled.add(streamId) },
  });
  const runtime = await startRuntime({
    config: defineConfig({ projections: [inlineBalance, balanceV1], reactors: [listener] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'silent' }),
  });
  const { db: own, log, live } = runtime;
  const readSchema = 'read_models';
  const step = { actor: 'ann', reason: 'a test' };
  await untilLive(runtime, inlineBalance);
  await until(async () => (await statusOf(runtime, balanceV1))?.state === 'active');
  const changes = live.changes(
    balanceV1,
    { where: null, columns: ['accountId'], since: null, snapshot: true },
    { after: null },
  );
  const changed = new Set<unknown>();
  const following = (async () => {
    for await (const update of changes) for (const { key } of update.changes) changed.add(key[0]);
  })();

  expect(await importEvents({ db: own, log, definition: openings, file })).toMatchObject({ written: 300 });
  await requestRebuild(own, balanceV1, readSchema, step);
  await until(async () => (await readRebuilds(own)).length === 0);
  await takeSnapshot({ db: own, readSchema, name: 'inline_balance', version: 1 }, step);
  await restoreSnapshot({ db: own, log, readSchema, projection: inlineBalance }, step, 'latest');
  await open(runtime, 'last');
  await untilLive(runtime, inlineBalance);
  await until(() => handled.size === 301 && changed.size === 301);
  for (const projection of [inlineBalance, balanceV1]) await expectRight(runtime, projection);

  await changes.return?.();
  await following;
  await runtime.stop();
  await database.drop();
  await rm(folder, { recursive: true });
});
