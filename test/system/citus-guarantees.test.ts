import { pino } from 'pino';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, type Projection, type Refold } from '../../src/index.ts';
import { examine } from '../../src/runtime/monitoring/examine.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { migrateStore } from '../../src/store/citus/place-store.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { openReadSnapshot } from '../../src/store/server/read-snapshot.ts';
import { type CitusCluster, portOf, startCitusCluster } from '../support/citus-cluster.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { nextIn } from '../support/next-version.ts';
import { openAccount, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const nowhere = { log: undefined, storesOf: () => [], others: () => [] };
const cluster = await startCitusCluster();
const openings: Projection = Object.freeze({ ...openingsV1, store: 'analytics' });
let log: TestDatabase;
let url: string;
let store: Database;
const apps: Refold[] = [];
afterAll(() => cluster.stop());
beforeEach(async () => {
  log = await createTestDatabase();
  url = await cluster.createStore('schema');
  store = createDatabase({ url, elsewhere: { ...nowhere, placement: 'schema' } });
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop();
  await store.close();
  await log.drop();
});

function configOf(
  readStore: { readonly url: string; readonly placement?: 'schema' } = { url, placement: 'schema' },
  ...projections: readonly Projection[]
) {
  return defineConfig({
    projections: projections.length > 0 ? projections : [openings],
    commands: [openAccount],
    database: { url: log.url },
    readStores: { analytics: readStore },
    gateway: { port: 0 },
  });
}

async function start(): Promise<Refold> {
  const app = await createRefold(configOf(), { logger: pino({ level: 'silent' }) });
  apps.push(app);
  await until(async () => (await app.status()).every(({ state }) => state === 'active'));
  return app;
}

/** The node of the cluster that holds the tables of the store. */
async function holder({ workers }: CitusCluster) {
  const [found] = await cluster.run<{ port: number }>(
    url,
    "select nodeport as port from citus_shards where table_name = 'refold.projections'::regclass",
  );
  return workers.find((node) => portOf(node) === found?.port) ?? expect.unreachable();
}

async function moveStore(): Promise<void> {
  await cluster.cleanUp(url);
  const from = await holder(cluster);
  const to = cluster.workers.find((node) => node !== from) ?? expect.unreachable();
  await cluster.run(
    url,
    `select citus_move_shard_placement(shardid, '127.0.0.1', ${portOf(from)}, '127.0.0.1', ${portOf(to)})
     from citus_shards where table_name = 'refold.projections'::regclass`,
  );
  expect(await holder(cluster)).toBe(to);
}

test('all tables of a store are on one worker, those of rebuilds and snapshots included, which can be moved as well', async () => {
  const app = await start();
  const step = { actor: 'test', reason: 'to see' };
  const { position } = await app.execute(openAccount, { accountId: 'a', owner: 'ada' });
  await until(async () => (await app.status()).every((version) => version.position >= position));
  const snapshot = await takeSnapshot({ db: store, readSchema: 'read_models', name: 'openings', version: 1 }, step);
  expect(snapshot).toMatchObject({ rows: 2n, checkpoint: position });
  expect(snapshot.bytes).toBeGreaterThan(0n);
  await app.execute(openAccount, { accountId: 'b', owner: 'ada' });
  await app.rebuilds.request(openings.id, { ...step, from: 'latest', wait: true });
  await moveStore();
  const { data } = await app.graphql('{ openings(owner: "*") { opened } }');
  expect(data).toEqual({ openings: { opened: 2 } });
  const nodes = await cluster.run<{ nodeport: number; tables: number }>(
    url,
    'select nodeport, count(*)::int as tables from citus_shards group by nodeport',
  );
  expect(nodes).toHaveLength(1);
  const left = await cluster.run<{ name: string }>(
    url,
    `select relname as name
     from pg_class
     left join pg_dist_partition on logicalrelid = pg_class.oid
     where relnamespace = 'read_models'::regnamespace and relkind = 'r' and logicalrelid is null`,
  );
  expect(left).toEqual([]);
});

// The tables are moved four times, with all their rows.
test('rows and checkpoint of a snapshot are of one moment, while batches are written and the tables move to another worker', async () => {
  const app = await start();
  let ended = false;
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let number = 0; !ended; number++)
      await app.execute(openAccount, { accountId: `${writer}-${number}`, owner: `owner-${number % 7}` });
  });
  const logDb = createDatabase({ url: log.url });
  const eventsUpTo = async (position: bigint) => {
    const text = 'select count(*) from refold.events where position <= $1';
    return (await logDb.query<{ count: bigint }>({ text, values: [position] }))[0]?.count;
  };
  const seen: { torn: number; behind: number; reads: number } = { torn: 0, behind: 0, reads: 0 };
  const readers = Array.from({ length: 3 }, async () => {
    while (!ended) {
      const snapshot = openReadSnapshot(store, { statementTimeout: 60_000 });
      try {
        const [rows] = await snapshot.query<{ parts: bigint; total: bigint }>({
          text: `
            select
              coalesce(sum(opened) filter (where owner <> '*'), 0)::bigint as parts,
              coalesce(sum(opened) filter (where owner = '*'), 0)::bigint as total
            from read_models.openings_v1`,
        });
        const [{ checkpoint = -1n } = {}] = await snapshot.query<{ checkpoint: bigint }>({
          text: "select checkpoint from refold.processors where name = 'openings'",
        });
        seen.reads++;
        if (rows?.parts !== rows?.total) seen.torn++;
        // Every event is one opening. Positions have gaps where the server ended a statement.
        if (rows?.total !== checkpoint && rows?.total !== (await eventsUpTo(checkpoint))) seen.behind++;
      } finally {
        await snapshot.close();
      }
    }
  });
  const readMore = async () => {
    const { reads } = seen;
    await until(() => seen.reads > reads + 200);
  };
  try {
    await readMore();
    await readMore();
    expect(seen).toMatchObject({ torn: 0, behind: 0 });
    for (let move = 0; move < 4; move++) {
      await moveStore();
      await readMore();
    }
  } finally {
    ended = true;
    await Promise.all([...writers, ...readers]);
    await logDb.close();
  }
  expect(seen).toMatchObject({ torn: 0, behind: 0 });
  const horizon = await app.log.horizon();
  await until(async () => (await app.status()).every(({ position }) => position >= horizon));
  expect(await storedTable(store, openings)).toEqual(await foldedTable(app.log, openings));
});

test('a worker that crashes is an outage of the store: appends go on, and the store catches up when the worker is back', async () => {
  const app = await start();
  await app.execute(openAccount, { accountId: 'a', owner: 'ada' });
  const query = '{ openings(owner: "*") { opened } }';
  const opened = async () => {
    const { data, errors } = await app.graphql(query);
    return errors
      ? String(errors[0]?.extensions.code)
      : (data as { openings: { opened: number } | null }).openings?.opened;
  };
  await until(async () => (await opened()) === 1);
  const worker = await holder(cluster);
  await worker.kill();
  await app.execute(openAccount, { accountId: 'b', owner: 'ada' });
  expect(await opened()).toBe('DATABASE_UNAVAILABLE');
  await worker.restart();
  await until(async () => (await opened()) === 2);
  await cluster.coordinator.restart('immediate');
  await app.execute(openAccount, { accountId: 'c', owner: 'ada' });
  await until(async () => (await opened()) === 3);
});

test('a read model moves to the cluster as its next version while the former one answers, and back', async () => {
  const there = nextIn('analytics', openingsV1);
  const versions = [openingsV1, there, nextIn('default', there)];
  let app: Refold | undefined;
  for (const [index, { store }] of versions.entries()) {
    await app?.execute(openAccount, { accountId: `before ${store} ${index}`, owner: 'ada' });
    const next = await createRefold(configOf({ url, placement: 'schema' }, ...versions.slice(0, index + 1)), {
      logger: pino({ level: 'silent' }),
    });
    apps.push(next);
    await app?.stop();
    app = next;
    await until(async () => (await next.status()).every(({ state }) => state === 'active'));
    expect((await next.status()).at(-1)).toMatchObject({ version: index + 1, store });
    const { position } = await next.execute(openAccount, { accountId: `in ${store} ${index}`, owner: 'ada' });
    const { data } = await next.graphql(`query @after(position: "${position}") { openings(owner: "*") { opened } }`);
    expect(data).toEqual({ openings: { opened: 1 + 2 * index } });
  }
});

test('a store whose placement and database do not fit is refused', async () => {
  const refused = (readStore: Parameters<typeof configOf>[0]) =>
    createRefold(configOf(readStore), { logger: pino({ level: 'silent' }), migrate: false }).catch(
      (error: Error) => error.message,
    );
  expect(await refused({ url })).toContain(
    "it is the coordinator of a Citus cluster (13.2-1), and the read store has no placement. Set its placement to 'schema'",
  );
  const plain = await createTestDatabase();
  expect(await refused({ url: plain.url, placement: 'schema' })).toContain(
    "The read store 'analytics': PostgreSQL at 127.0.0.1",
  );
  await expect(migrateStore({ url: plain.url, placement: 'schema' })).rejects.toMatchObject({
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringContaining('the database does not have the extension citus'),
  });
  await plain.drop();

  const unplaced = await cluster.createDatabase();
  await migrateStore({ url: unplaced });
  expect(await refused({ url: unplaced, placement: 'schema' })).toMatch(
    /\d+ tables of the store are not on a worker\. Run `refold migrate`\./,
  );
  await cluster.run(
    unplaced,
    `insert into refold.projections (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
     values ('x', 1, 'active', 'read_models', 'x_v1', '', '', '{}')`,
  );
  await expect(migrateStore({ url: unplaced, placement: 'schema' })).rejects.toMatchObject({
    message: expect.stringContaining('it holds x@1, whose rows are on the coordinator.'),
  });
  const [worker] = cluster.workers;
  const atWorker = new URL(await cluster.createDatabase());
  atWorker.port = new URL(worker?.url ?? '').port;
  await expect(migrateStore({ url: atWorker.href, placement: 'schema' })).rejects.toMatchObject({
    message: expect.stringContaining('it is a worker of a Citus cluster. Give the URL of the coordinator.'),
  });
  expect(await readRegistry(store)).toEqual([]);
});

test('refold doctor examines the cluster', async () => {
  const db = createDatabase({ url: log.url });
  const apart = (placement: 'schema' | undefined) =>
    createDatabase({ url, elsewhere: { ...nowhere, log: db, placement } });
  for (const placement of ['schema', undefined] as const) {
    const own = apart(placement);
    const findings = await examine(db, configOf(), [{ name: 'analytics', db: own }]);
    const ofStore = findings.find(({ subject }) => subject === 'stores');
    expect(ofStore).toMatchObject({ kind: placement === undefined ? 'problem' : 'ok' });
    await own.close();
  }
  await db.close();
});
