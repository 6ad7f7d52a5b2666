import pg from 'pg';
import { expect, test } from 'vitest';
import { defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import type { InspectedApplication } from '../../../src/runtime/inspection/application.ts';
import { readOverview } from '../../../src/runtime/inspection/overview.ts';
import { examine } from '../../../src/runtime/monitoring/examine.ts';
import { dropSnapshot, takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { viewBehindText } from '../../../src/runtime/versions/follow-views.ts';
import { readViewsBehind } from '../../../src/store/tables/views-behind.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const step = { actor: 'ann', reason: 'a test' };

const start = (projections: readonly Projection[]) => setting.start(defineConfig({ projections, events: [account] }));
const stateOf = async (runtime: Runtime, version: number) =>
  (await runtime.status()).find((one) => one.version === version)?.state;

/** As `pg_dump` does: a transaction that has read a view holds it until it ends. */
async function longReader(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: setting.database.url, application_name: 'nightly dump' });
  await client.connect();
  await client.query('begin; select from read_models.balance');
  return client;
}

const columns = async ({ db }: Runtime): Promise<number> => {
  const [row] = await db.query<{ count: number }>({
    text: `select count(*)::int as count from information_schema.columns where table_schema = 'read_models' and table_name = 'balance'`,
  });
  return row?.count ?? 0;
};

test('a version becomes active while a long transaction reads the view, which follows when that has ended', async () => {
  const first = await start([balanceV1]);
  await first.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await until(async () => (await stateOf(first, 1)) === 'active');
  const before = await columns(first);
  const reader = await longReader();
  const second = await start([balanceV1, balanceV2]);
  await until(async () => (await stateOf(second, 2)) === 'active');
  const text = await until(() => setting.messages.find((message) => message.includes('still shows balance@1')));
  expect(text).toMatch(
    /^The view read_models\.balance still shows balance@1, although balance@2 answers: session \d+ of 'nightly dump' reads it, in a transaction that began at .*\. It follows within 5 seconds when nobody reads it\./,
  );
  // Nobody waits in front of other readers of the view.
  expect(await second.db.query({ text: 'select owner from read_models.balance' })).toEqual([{ owner: 'Ada' }]);
  expect(await columns(second)).toBe(before);
  // All other steps go on, too.
  await second.lifecycle.rollback('balance', step);
  expect(await readViewsBehind(second.db, 'read_models')).toEqual([]);
  await second.lifecycle.activate('balance', 2, step);
  expect(await readViewsBehind(second.db, 'read_models')).toMatchObject([
    { name: 'balance', shows: 1, answering: 2, reader: { applicationName: 'nightly dump' } },
  ]);
  await reader.query('rollback');
  await reader.end();
  await until(async () => (await columns(second)) > before);
  expect(await readViewsBehind(second.db, 'read_models')).toEqual([]);
});

test('an edited version is rebuilt in development while a long transaction reads its view, which goes when that has ended', async () => {
  const first = await start([balanceV1]);
  await first.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await until(async () => (await stateOf(first, 1)) === 'active');
  await setting.stop(first);
  const reader = await longReader();
  const edited = defineProjection({
    name: 'balance',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
  });
  const second = await setting.start(defineConfig({ projections: [edited], events: [account] }), { development: true });
  await until(async () => (await stateOf(second, 1)) === 'active');
  expect(second.versions.stored(edited).tableName).not.toBe('balance_v1');
  const rows = `select owner from read_models.${second.versions.stored(edited).tableName}`;
  expect(await second.db.query({ text: rows })).toEqual([{ owner: 'Ada' }]);
  await reader.query('rollback');
  await reader.end();
  await until(async () => (await columns(second)) === 2);
  expect(await second.db.query({ text: 'select owner from read_models.balance' })).toEqual([{ owner: 'Ada' }]);
  // While the view shows the old table, that can't be dropped, which is tried again after a minute.
  expect(
    await second.db.query({ text: `select table_name from refold.old_tables where table_name = 'balance_v1'` }),
  ).toHaveLength(1);
});

test('a snapshot is dropped, and its version retired, while a long transaction reads them; the tables go when it has ended', async () => {
  const runtime = await start([balanceV1, balanceV2]);
  await until(async () => (await stateOf(runtime, 2)) === 'active');
  const { db } = runtime;
  const take = () => takeSnapshot({ db, readSchema: 'read_models', name: 'balance', version: 1 }, step);
  const [one, other] = [await take(), await take()];
  const reader = await longReader();
  const tables = [one.tableName, other.tableName, 'balance_v1'];
  for (const table of tables) await reader.query(`select from read_models.${table}`);
  await dropSnapshot(db, 'balance', 1, one.id, step);
  await runtime.lifecycle.retire('balance', 1, step, 0);
  const left = () => db.query({ text: 'select from pg_tables where tablename = any ($1)', values: [tables] });
  expect(await left()).toHaveLength(3);
  await reader.query('rollback');
  await reader.end();
  await until(async () => (await left()).length === 0);
});

test('a version is rolled back while a view of a user depends on columns that the stable view has to lose', async () => {
  const config = defineConfig({ projections: [balanceV1, balanceV2], events: [account] });
  const runtime = await setting.start(config);
  await until(async () => (await stateOf(runtime, 2)) === 'active');
  await setting.database.administer(
    'create schema reports; create view reports.totals as select owner, largest from read_models.balance',
  );
  await runtime.lifecycle.rollback('balance', step);
  expect(await stateOf(runtime, 2)).toBe('ready');
  const text =
    /^The view read_models\.balance still shows balance@2, although balance@1 answers\. .* reports\.totals selects from it: if it has to lose columns, drop that view first\./;
  await until(() => setting.messages.some((message) => text.test(message)));
  expect(await examine(runtime.db, config, [])).toContainEqual(
    expect.objectContaining({ subject: 'views', kind: 'note', message: expect.stringMatching(text) }),
  );
  const inspected = { ...runtime, config } as InspectedApplication; // what the overview reads of it
  expect((await readOverview(inspected)).viewsBehind).toEqual([expect.stringMatching(text)]);
  // What loses nothing goes on.
  await runtime.lifecycle.activate('balance', 2, step);
  expect(await readViewsBehind(runtime.db, 'read_models')).toEqual([]);
  await runtime.lifecycle.rollback('balance', step);
  await setting.database.administer('drop view reports.totals');
  await until(async () => (await readViewsBehind(runtime.db, 'read_models')).length === 0);
});

test('a view that a user has put in place of a stable one is left alone', async () => {
  const runtime = await start([balanceV1]);
  await until(async () => (await stateOf(runtime, 1)) === 'active');
  await runtime.db.query({
    text: 'drop view read_models.balance; create table read_models.mine (owner text); create view read_models.balance as select * from read_models.mine',
  });
  expect(await readViewsBehind(runtime.db, 'read_models')).toEqual([]);
});

test('the text about a view says who reads it, also if it may not see it, and if nobody does', () => {
  const behind = { name: 'a', shows: 1, answering: null, dependents: [] };
  expect(viewBehindText('s', { ...behind, reader: null })).toMatch(
    /^The view s\.a still shows a@1, although no version answers any more\. It/,
  );
  const prepared = { pid: null, applicationName: null, since: null, seconds: null };
  expect(viewBehindText('s', { ...behind, reader: prepared })).toContain(': a prepared transaction reads it. It');
});
