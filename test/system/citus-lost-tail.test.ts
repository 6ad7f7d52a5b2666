import { pino } from 'pino';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, type Projection, type Refold, t } from '../../src/index.ts';
import { listDeadLetters, retryDeadLetters } from '../../src/runtime/dead-letters/dead-letters.ts';
import { cancelRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { portOf, startCitusCluster } from '../support/citus-cluster.ts';
import { followFeed } from '../support/feed-client.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { olderDisk } from '../support/older-disk.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { account } from '../support/sample-domain.ts';
import { active, answer, caughtUp } from '../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { readTransitions } from '../support/transitions.ts';
import { until } from '../support/until.ts';

// A worker of a Citus cluster loses its last transactions: its disk is replaced by an older copy. Nothing is appended after that.
const cluster = await startCitusCluster();
const placement = 'partition';
const partitions = 8;
const step = { actor: 'ann', reason: 'to see' };
const ids = Array.from({ length: 20 }, (_, index) => `id-${index}`);
let log: TestDatabase;
let home: Database;
let url: string;
let store: Database;
const said: string[] = [];
const apps: Refold[] = [];
afterAll(() => cluster.stop());
beforeEach(async () => {
  log = await createTestDatabase();
  url = await cluster.createStore(placement);
  home = createDatabase({ url: log.url, maxConnections: 2 });
  store = createDatabase({ url, elsewhere: { log: home, storesOf: () => [], others: () => [], placement } });
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop();
  said.splice(0);
  await store.close();
  await home.close();
  await log.drop();
});

/** The amount 13 may fail. */
function tally({ fails = false, of = partitions } = {}): Projection {
  return defineProjection({
    name: 'tally',
    version: 1,
    store: 'analytics',
    partitions: of,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer().index(), last: t.bigint() },
    key: ({ streamId }) => streamId,
    evolve: {
      Credited: (row, { position, payload: { amount } }) => {
        if (fails && amount === '13') throw new Error(`${amount} is bad luck`);
        return { credits: (row?.credits ?? 0) + 1, last: position };
      },
    },
    onError: 'dead-letter',
  });
}

async function start(projection: Projection, role: 'all' | 'gateway' = 'all'): Promise<Refold> {
  const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  const config = defineConfig({
    projections: [projection],
    database: { url: log.url },
    readStores: { analytics: { url, placement } },
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  const app = await createRefold(config, { logger, role });
  apps.push(app);
  if (role === 'all') await active(app, projection.id);
  return app;
}

async function credit(app: Refold, streamIds: readonly string[], amount = '1'): Promise<bigint> {
  let last = 0n;
  for (const streamId of streamIds) {
    const events = [{ type: 'Credited', payload: { amount } } as const];
    ({ position: last } = await app.log.append({ family: account, streamId, events }));
  }
  return last;
}

/** The worker that has the registry, or another one that has rows. */
async function workerWith(what: 'registry' | 'rows'): Promise<PostgresCluster> {
  const [found] = await cluster.run<{ port: number }>(
    url,
    "select nodeport as port from citus_shards where table_name = 'refold.projections'::regclass",
  );
  const worker = cluster.workers.find((node) => (portOf(node) === found?.port) === (what === 'registry'));
  return worker ?? expect.unreachable();
}

async function putBack(back: () => Promise<void>): Promise<void> {
  said.splice(0);
  await back();
}

async function untilSaid(pattern: RegExp): Promise<void> {
  await until(() => said.some((line) => pattern.test(line)));
}

/** The rows of the table that the version has now. */
async function stored(projection: Projection) {
  const [found] = await store.query<{ tableName: string }>({
    text: 'select table_name as "tableName" from refold.projections where name = $1',
    values: [projection.name],
  });
  return storedTable(store, { ...projection, ...found });
}

async function expectFold(app: Refold, projection: Projection): Promise<void> {
  await caughtUp(app, projection.id);
  expect(await stored(projection)).toEqual(await foldedTable(app.log, projection));
}

async function lostOf(app: Refold): Promise<number> {
  const text = await (await fetch(`${app.url}/metrics`)).text();
  return Number(/^refold_rows_lost_total (\d+)$/m.exec(text)?.[1]);
}

const total = (position: bigint) => `query @after(position: "${position}") { talliesAggregate { sum { credits } } }`;

test('rows that a worker has lost are noticed without a new event, and folded again', async () => {
  const projection = tally();
  const app = await start(projection);
  const gateway = await start(projection, 'gateway');
  await credit(app, ids);
  await caughtUp(app, projection.id);
  const back = await olderDisk(await workerWith('rows'));
  const last = await credit(app, [...ids, ...ids]);
  await caughtUp(app, projection.id);
  const feed = followFeed(
    `${gateway.url}/graphql`,
    'tallyChanges { position cursor reset lagged changes { operation key { accountId } } }',
  );
  await until(() => feed.rows.size === ids.length);

  await putBack(back);
  await untilSaid(/^tally@1\/\d: a worker of the Citus cluster has lost rows\. They are those of position \d+, and/);
  await expectFold(app, projection);
  expect(await answer(gateway, total(last))).toEqual({ talliesAggregate: { sum: { credits: '60' } } });
  expect(await lostOf(app)).toBeGreaterThan(0);
  const reasons = (await readTransitions(store, { limit: 100 })).map(({ reason }) => reason);
  expect(reasons).toContainEqual(expect.stringMatching(/^partition \d: rows lost, checkpoint \d+ set to \d+$/));
  // Which rows they had is unknown.
  await until(() => feed.messages.filter(({ reset }) => reset).length > 1 && feed.rows.size === ids.length);
  await feed.stop();
  expect(said.filter((line) => line.startsWith('could not compare rows'))).toEqual([]);
});

test('a worker that has lost everything since the table was created folds it from the beginning', async () => {
  const projection = tally();
  const gateway = await start(projection, 'gateway');
  await gateway.stop();
  const back = await olderDisk(await workerWith('rows'));
  const app = await start(projection);
  await credit(app, ids);
  await caughtUp(app, projection.id);

  await putBack(back);
  await untilSaid(/has lost rows\. They are those of position 0, and the checkpoint was 20\./);
  await expectFold(app, projection);
});

test('a rebuild of which a worker has lost rows is held, and another one completes', async () => {
  let app = await start(tally());
  await credit(app, ids, '13');
  await caughtUp(app, 'tally@1');
  await app.stop();
  app = await start(tally({ fails: true }));
  await app.rebuilds.request('tally@1', { ...step, wait: false });
  const rebuild = async () => (await app.status())[0]?.rebuild;
  const untilRebuiltTo = (position: bigint) => until(async () => ((await rebuild())?.checkpoint ?? 0n) >= position);
  await untilRebuiltTo(20n);
  const back = await olderDisk(await workerWith('rows'));
  await untilRebuiltTo(await credit(app, ids));

  await putBack(back);
  await until(async () => (await rebuild())?.status === 'stopped');
  expect((await rebuild())?.error?.message).toBe(
    'tally@1: a worker of the Citus cluster has lost transactions of this rebuild. Cancel the rebuild and start another: refold rebuild tally@1 --cancel.',
  );
  await app.stop();
  app = await start(tally());
  await cancelRebuild(store, 'tally', 1, 'read_models', step);
  await app.rebuilds.request('tally@1', { ...step, wait: true });
  await expectFold(app, tally());
});

test('what the worker of the registry has lost is noticed without a new event, too', async () => {
  const projection = tally();
  const app = await start(projection);
  await credit(app, ids);
  await caughtUp(app, projection.id);
  const back = await olderDisk(await workerWith('registry'));
  const last = await credit(app, [...ids, ...ids]);
  await caughtUp(app, projection.id);

  await putBack(back);
  await untilSaid(/^tally@1\/\d: the worker of the Citus cluster that has the registry has lost its checkpoint\./);
  await expectFold(app, projection);
  expect(await answer(app, total(last))).toEqual({ talliesAggregate: { sum: { credits: '60' } } });
});

test('a read model on the worker of the registry is folded again from what is left, without a new event', async () => {
  const projection = tally({ of: 1 });
  const app = await start(projection);
  await credit(app, ids);
  await caughtUp(app, projection.id);
  const back = await olderDisk(await workerWith('registry'));
  // It is owned again after the first restart, so that the second one finds an owner who must go back.
  await untilSaid(/this process owns its processor, and continues after position 20$/);
  await credit(app, ids);
  await caughtUp(app, projection.id);

  await putBack(back);
  await untilSaid(/the worker of the Citus cluster that has the registry was started again, or is another one\.$/);
  await expectFold(app, projection);
});

test('dead letters of events that are folded again are the same, and a partition whose dead letters are lost is held until a rebuild', async () => {
  const projection = tally({ fails: true });
  const app = await start(projection);
  const letters = async () => {
    const found = await listDeadLetters({ db: store, log: app.log, readSchema: 'read_models', projection });
    return found.map(({ key, position, error }) => [String(key), position, error === null]);
  };
  await credit(app, ids);
  await caughtUp(app, projection.id);
  for (const what of ['rows', 'registry'] as const) {
    const back = await olderDisk(await workerWith(what));
    await credit(app, ids);
    await credit(app, ids, '13');
    await credit(app, ids);
    await caughtUp(app, projection.id);
    const before = await letters();
    const rows = await stored(projection);
    await putBack(back);
    if (what === 'rows') {
      await untilSaid(/has lost rows/);
      await caughtUp(app, projection.id);
      expect(await letters()).toEqual(before);
      expect(await stored(projection)).toEqual(rows);
      continue;
    }
    await untilSaid(
      /has lost dead letters, skipped events or a retry of them.*Rebuild them: refold rebuild tally@1\.$/,
    );
    await until(async () => (await app.status()).some(({ error }) => error?.code === 'HISTORY_CHANGED'));
    await app.rebuilds.request(projection.id, { ...step, wait: true });
    await caughtUp(app, projection.id);
    expect((await letters()).length).toBeGreaterThan(before.length - 1);
  }
});

test.each([
  'rows',
  'registry',
] as const)('after a retry of dead letters that a worker with the %s has lost, the version is held until a rebuild', async (what) => {
  const failing = tally({ fails: true });
  let app = await start(failing);
  await credit(app, [...ids, ...ids], '13');
  await caughtUp(app, failing.id);
  await app.stop();
  const projection = tally();
  app = await start(projection);
  const back = await olderDisk(await workerWith(what));
  const letters = { db: store, log: app.log, readSchema: 'read_models', projection };
  await retryDeadLetters(letters, step);
  await expectFold(app, projection);

  await putBack(back);
  await untilSaid(/has lost dead letters, skipped events or a retry of them/);
  await until(async () => (await app.status()).some(({ error }) => error?.code === 'HISTORY_CHANGED'));
  await app.rebuilds.request(projection.id, { ...step, wait: true });
  await expectFold(app, projection);
  expect(await listDeadLetters(letters)).toEqual([]);
});
