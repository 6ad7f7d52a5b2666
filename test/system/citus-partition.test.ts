import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, type Projection, type Refold, t } from '../../src/index.ts';
import { partitionOf } from '../../src/projections/projection/partition.ts';
import { keyText } from '../../src/projections/projection/projection.ts';
import { listDeadLetters, retryDeadLetters } from '../../src/runtime/dead-letters/dead-letters.ts';
import { examine } from '../../src/runtime/monitoring/examine.ts';
import { createRowBatch } from '../../src/runtime/processors/row-batch.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { verifyVersion } from '../../src/runtime/verification/verify.ts';
import { claimPartition } from '../../src/store/distributed/claimed-partitions.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { claimProcessor } from '../../src/store/processors/checkpoints.ts';
import { openReadSnapshot } from '../../src/store/server/read-snapshot.ts';
import { readTableProblems } from '../../src/store/tables/table-problems.ts';
import { portOf, startCitusCluster } from '../support/citus-cluster.ts';
import { followFeed } from '../support/feed-client.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { nextIn } from '../support/next-version.ts';
import { account, balanceV1, inPartitions } from '../support/sample-domain.ts';
import { active, answer, caughtUp, inStore } from '../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// Read models whose rows are distributed over the workers of a Citus cluster, by partition.
const cluster = await startCitusCluster();
const placement = 'partition';
const step = { actor: 'ann', reason: 'to see' };
const silent = pino({ level: process.env.LOG ?? 'silent' });
const partitions = 4;
let log: TestDatabase;
let home: Database;
let url: string;
let store: Database;
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
  await store.close();
  await home.close();
  await log.drop();
});

const partitionOfRow = (row: string) => partitionOf(keyText([row]), partitions);

/** Another row of the same partition. */
function twinOf(id: string): string {
  for (let number = 0; ; number++) {
    const twin = `${id}'${number}`;
    if (partitionOfRow(twin) === partitionOfRow(id)) return twin;
  }
}

/** Each credit changes two rows of a partition. The amount 13 may fail. */
function ledger(fails = false): Projection {
  return defineProjection({
    name: 'ledger',
    version: 1,
    store: 'analytics',
    partitions,
    events: account,
    table: { row: t.text().primaryKey(), credits: t.integer().index(), last: t.bigint() },
    key: ({ streamId }) => [streamId, twinOf(streamId)],
    evolve: {
      Credited: (row, { position, payload: { amount } }) => {
        if (fails && amount === '13') throw new Error(`${amount} is bad luck`);
        return { credits: (row?.credits ?? 0) + 1, last: position };
      },
      Closed: () => null,
    },
    onError: 'dead-letter',
  });
}

function configOf(...projections: readonly Projection[]) {
  return defineConfig({
    projections,
    database: { url: log.url },
    readStores: { analytics: { url, placement } },
    gateway: { port: 0 },
  });
}

async function start(...projections: readonly Projection[]): Promise<Refold> {
  const app = await createRefold(configOf(...projections), { logger: silent });
  apps.push(app);
  await active(app, ...projections.map(({ id }) => id));
  return app;
}

/** Maintains nothing. */
async function gateway(...projections: readonly Projection[]): Promise<Refold> {
  const app = await createRefold(configOf(...projections), { logger: silent, role: 'gateway' });
  apps.push(app);
  return app;
}

async function credit(app: Refold, streamId: string, amount = '1'): Promise<bigint> {
  const { position } = await app.log.append({
    family: account,
    streamId,
    events: [{ type: 'Credited', payload: { amount } }],
  });
  return position;
}

async function expectFold(app: Refold, projection: Projection): Promise<void> {
  await caughtUp(app, projection.id);
  const [found] = await store.query<{ name: string }>({
    text: 'select table_name as name from refold.projections where name = $1',
    values: [projection.name],
  });
  const stored = { ...projection, tableName: String(found?.name) };
  expect(await storedTable(store, stored)).toEqual(await foldedTable(app.log, projection));
}

/** Where the shards of a table are. */
function shardsOf(table: string): Promise<{ shard: bigint; port: number }[]> {
  return cluster.run(
    url,
    `select shardid as shard, nodeport as port from citus_shards where table_name = '${table}'::regclass order by shardid`,
  );
}

async function moveShard({ shard, port }: { readonly shard: bigint; readonly port: number }): Promise<void> {
  const to = cluster.workers.map(portOf).find((other) => other !== port);
  await cluster.cleanUp(url);
  await cluster.run(url, `select citus_move_shard_placement(${shard}, '127.0.0.1', ${port}, '127.0.0.1', ${to})`);
}

// Shards are moved and rebalanced, and a worker crashes.
test('rows of a partition are of one moment with its checkpoint and never behind that of the registry, while shards move and a worker crashes', async () => {
  const app = await start(ledger());
  const positions: { position: bigint; partition: number }[] = [];
  let ended = false;
  const writers = Array.from({ length: 3 }, async (_, writer) => {
    for (let number = 0; !ended; number++) {
      const id = `${writer}-${number % 40}`;
      positions.push({ position: await credit(app, id), partition: partitionOfRow(id) });
    }
  });
  const seen: { partition: number; known: bigint; checkpoint: bigint; credits: bigint; twins: bigint; last: bigint }[] =
    [];
  const readers = Array.from({ length: 2 }, async () => {
    // Of all partitions, or of one: then only its worker has been asked before the registry's.
    for (let number = 0; !ended; number++) {
      const snapshot = openReadSnapshot(store, { statementTimeout: 60_000 });
      try {
        const rows = await snapshot.query<{ partition: number; credits: bigint; twins: bigint; last: bigint }>({
          text: `
            select
              _partition as partition,
              coalesce(sum(credits) filter (where row not like '%''%'), 0)::bigint as credits,
              coalesce(sum(credits) filter (where row like '%''%'), 0)::bigint as twins,
              max(last) as last
            from read_models.ledger_v1
            where ${number % 2 === 0 || `_partition = ${number % partitions}`}
            group by _partition`,
        });
        // Meanwhile more is written and recorded.
        const { length } = positions;
        await until(() => ended || positions.length > length + 5);
        const known = await snapshot.query<{ partition: number; checkpoint: bigint }>({
          text: "select partition, checkpoint from refold.processors where name = 'ledger'",
        });
        const beside = await snapshot.query<{ partition: number; checkpoint: bigint }>({
          text: "select partition, checkpoint from refold.partition_checkpoints where table_name = 'ledger_v1'",
        });
        const of = (list: typeof known, partition: number) =>
          list.find((one) => one.partition === partition)?.checkpoint ?? -1n;
        for (const row of rows)
          seen.push({ ...row, checkpoint: of(beside, row.partition), known: of(known, row.partition) });
      } catch (error) {
        // While the worker is away.
        expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
      } finally {
        await snapshot.close().catch(() => {});
      }
    }
  });
  const readMore = async (most = 150) => {
    const { length } = seen;
    await until(() => seen.length > length + most);
  };
  await readMore();
  const held = await cluster.run<{ shard: bigint }>(
    url,
    "select get_shard_id_for_distribution_column('refold.partition_checkpoints', 0) as shard",
  );
  const shards = await shardsOf('refold.partition_checkpoints');
  for (const one of shards.filter(({ shard }) => shard === held[0]?.shard)) await moveShard(one);
  await readMore();
  const [registry] = await shardsOf('refold.projections');
  if (registry) await moveShard(registry);
  await readMore();
  await cluster.cleanUp(url);
  await cluster.run(url, 'select citus_rebalance_start()');
  await cluster.run(url, 'select citus_rebalance_wait()');
  await readMore();
  const [worker] = cluster.workers;
  await worker?.kill();
  await worker?.restart();
  await readMore();
  ended = true;
  await Promise.all([...writers, ...readers]);
  await expectFold(app, ledger());
  const within = (partition: number, upTo: bigint) =>
    BigInt(positions.filter((one) => one.partition === partition && one.position <= upTo).length);
  const wrong = seen.filter(
    ({ partition, known, checkpoint, credits, twins, last }) =>
      credits !== twins || credits !== within(partition, checkpoint) || last > checkpoint || checkpoint < known,
  );
  expect(wrong).toEqual([]);
  expect(new Set((await shardsOf('refold.partition_checkpoints')).map(({ port }) => port)).size).toBe(2);
});

test('a former owner writes nothing, and the next one records the batch that its owner could not', async () => {
  const app = await start(ledger());
  const id = 'a';
  const partition = partitionOfRow(id);
  await credit(app, id);
  await caughtUp(app, 'ledger@1');
  await app.stop();
  const { log: events } = await gateway(ledger());
  const unit = { kind: 'processor', name: 'ledger', version: 1, partition } as const;
  const batchOf = async (owner: string, from = 1) => {
    const claim = await claimProcessor(store, unit, owner);
    expect(await claimPartition(store, ledger(), claim, owner)).toBeNull();
    const batch = createRowBatch({
      ...{ db: store, readSchema: 'read_models', projection: ledger(), claim, freeze: true, logger: silent },
    });
    const { position } = await events.append({
      family: account,
      streamId: id,
      events: [{ type: 'Credited', payload: { amount: String(from) } }],
    });
    const page = await events.readAll({ after: claim.checkpoint, upTo: position, filter: ledger().filter, limit: 10 });
    await batch.fold(page.events);
    return { batch, move: { from: claim.checkpoint, to: position, state: 'active', busyMs: 1 } as const };
  };
  const former = await batchOf('former');
  const next = await batchOf('next');
  await expect(former.batch.write(former.move)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  expect((await storedTable(store, ledger())).get('["a"]')).toMatchObject({ credits: 1 });

  // Killed between the commit of its rows and that of the registry.
  await next.batch.write(next.move);
  const registered = () =>
    store.query<{ checkpoint: bigint }>({
      text: "select checkpoint from refold.processors where name = 'ledger' and partition = $1",
      values: [partition],
    });
  expect(await registered()).toEqual([{ checkpoint: next.move.from }]);
  await expect(next.batch.write(next.move)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  const third = await claimProcessor(store, unit, 'third');
  expect(await claimPartition(store, ledger(), third, 'third')).toEqual({
    checkpoint: next.move.to,
    cause: 'unrecorded',
  });
  expect(await registered()).toEqual([{ checkpoint: next.move.to }]);
  const changes = await store.query({
    text: "select upserted from refold.changes where name = 'ledger' and checkpoint = $1",
    values: [next.move.to],
  });
  expect(changes).toEqual([{ upserted: [[id], [twinOf(id)]] }]);

  // A worker that has lost its last transactions: the registry follows its rows, which are folded again.
  await store.query({
    text: "update refold.partition_checkpoints set checkpoint = 0, anchor = null, batch = null where table_name = 'ledger_v1'",
  });
  await store.query({ text: 'delete from read_models.ledger_v1' });
  const again = await start(ledger());
  // Until the partition is claimed, the registry still has the position of the lost rows.
  await until(async () => (await storedTable(store, ledger())).size === 2);
  await expectFold(again, ledger());
});

test('dead letters are retried, and the version is rebuilt beside and in place, verified and retired', async () => {
  const failing = ledger(true);
  let app = await start(failing);
  for (let number = 0; number < 60; number++) await credit(app, `id-${number % 9}`, number % 10 === 3 ? '13' : '1');
  await app.log.append({ family: account, streamId: 'id-1', events: [{ type: 'Closed', payload: {} }] });
  await caughtUp(app, failing.id);
  const options = { db: store, log: app.log, readSchema: 'read_models' };
  const letters = await listDeadLetters({ ...options, projection: failing });
  expect(letters.filter(({ error }) => error !== null).length).toBeGreaterThan(3);
  expect(await verifyVersion({ ...options, projection: failing })).toMatchObject({ differences: 0 });
  await app.rebuilds.request(failing.id, { ...step, wait: true });
  await caughtUp(app, failing.id);
  expect(await listDeadLetters({ ...options, projection: failing })).toHaveLength(letters.length);
  await app.rebuilds.request(failing.id, { ...step, wait: true, inPlace: true });
  await caughtUp(app, failing.id);
  expect(await listDeadLetters({ ...options, projection: failing })).toHaveLength(letters.length);
  await app.stop();

  const projection = ledger();
  app = await start(projection);
  await credit(app, 'id-3');
  await retryDeadLetters({ ...options, log: app.log, projection }, step);
  expect(await listDeadLetters({ ...options, projection })).toEqual([]);
  await expectFold(app, projection);
  await credit(app, 'id-3');
  await expectFold(app, projection);
  const verified = await verifyVersion({ ...options, log: app.log, projection });
  expect(verified).toMatchObject({ differences: 0, rowsCompared: 16 });
  expect(await readTableProblems(store)).toEqual([]);
  const view = await store.query<object>({ text: 'select * from read_models.ledger limit 1' });
  expect(Object.keys(view[0] ?? {})).toEqual(['row', 'credits', 'last']);
  await expect(takeSnapshot({ ...options, name: 'ledger', version: 1 }, step)).rejects.toThrow(
    'ledger@1 is distributed over the workers of a Citus cluster by partition, and a snapshot needs all its rows at one position.',
  );
});

test('the next version takes over, is rolled back and retired; queries, lists and counts read all partitions', async () => {
  const v2: Projection = Object.freeze({
    ...ledger(),
    ...{ version: 2, id: 'ledger@2', tableName: 'ledger_v2', partitions: 2 },
  });
  const app = await start(ledger());
  const ids = Array.from({ length: 12 }, (_, index) => `id-${index}`);
  for (const id of ids) await credit(app, id);
  await caughtUp(app, 'ledger@1');
  await app.stop();
  const both = await start(ledger(), v2);
  const position = await credit(both, 'id-0');
  const query = `query @after(position: "${position}") {
    ledger(row: "id-0") { credits }
    ledgers(first: 3, where: { credits: { gt: 0 } }, orderBy: [{ credits: DESC }]) { totalCount nodes { row credits } }
    ledgersAggregate { count max { credits } }
  }`;
  const expected = {
    ledger: { credits: 2 },
    ledgers: {
      totalCount: 24,
      nodes: [
        { row: 'id-0', credits: 2 },
        { row: twinOf('id-0'), credits: 2 },
        { row: 'id-1', credits: 1 },
      ],
    },
    ledgersAggregate: { count: 24, max: { credits: 2 } },
  };
  expect(await answer(both, query)).toEqual(expected);
  // Over HTTP, queries of other databases would be one statement.
  const response = await fetch(`${both.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  expect(await response.json()).toEqual({ data: expected });
  await both.lifecycle.rollback('ledger', step);
  expect(await answer(both, query)).toMatchObject(expected);
  await both.lifecycle.activate('ledger', 2, step);
  await both.lifecycle.retire('ledger', 1, step);
  expect(await answer(both, query)).toMatchObject(expected);
});

test('subscribers of a row and of a list see every change in all partitions', async () => {
  const app = await start(ledger());
  for (let index = 0; index < 6; index++) await credit(app, `id-${index}`);
  const row = followFeed(`${app.url}/graphql`, 'ledger(row: "id-3") { credits }');
  const list = followFeed(
    `${app.url}/graphql`,
    'ledgers(first: 50, where: { credits: { gt: 0 } }) { snapshot { row credits } entered { row credits } changed { row credits } left { row } }',
  );
  const listed = () => {
    const rows = new Map<string, unknown>();
    for (const message of list.messages as unknown as ListMessage[]) {
      if (message.snapshot) rows.clear();
      for (const one of [...(message.snapshot ?? []), ...message.entered, ...message.changed])
        rows.set(one.row, one.credits);
      for (const one of message.left) rows.delete(one.row);
    }
    return rows;
  };
  await until(() => row.messages.length > 0 && list.messages.length > 0);
  for (let index = 0; index < 24; index++) await credit(app, `id-${index % 8}`);
  await app.log.append({ family: account, streamId: 'id-0', events: [{ type: 'Closed', payload: {} }] });
  const folded = await foldedTable(app.log, ledger());
  const expected = new Map(
    [...folded.values()].map((one) => [(one as ListedRow).row, (one as ListedRow).credits] as const),
  );
  await until(() => isDeepStrictEqual(new Map([...listed()].sort()), new Map([...expected].sort())));
  await until(() => row.messages.at(-1)?.credits === expected.get('id-3'));
  await list.stop();
  await row.stop();
});

interface ListedRow {
  readonly row: string;
  readonly credits: number;
}

type ListMessage = Record<'snapshot' | 'entered' | 'changed' | 'left', readonly ListedRow[]>;

test('a read model moves from one database to the workers as its next version, and back', async () => {
  const here = inPartitions(balanceV1, 3);
  const there = nextIn('analytics', here);
  const versions = [here, there, nextIn('default', there)];
  for (const [index, { id, store }] of versions.entries()) {
    const app = await createRefold(configOf(...versions.slice(0, index + 1)), { logger: silent });
    apps.push(app);
    await app.log.append({
      family: account,
      streamId: `in ${store} ${index}`,
      events: [{ type: 'Opened', payload: { owner: 'ada' } }],
    });
    await caughtUp(app, id);
    await until(async () => (await app.graphql('{ balances { totalCount } }')).errors === undefined);
    expect(await answer(app, '{ balances { totalCount } }')).toEqual({ balances: { totalCount: index + 1 } });
    expect((await app.status()).at(-1)).toMatchObject({ version: index + 1, store });
    await app.stop();
  }
});

test('what cannot be distributed is refused at the start, with the reason and the way out', async () => {
  const { relations, ...one } = inStore(inPartitions(balanceV1, 2));
  const related = { other: { kind: 'one', target: 'balance', from: ['accountId'], to: ['accountId'] } } as never; // its form does not matter
  expect(() => configOf({ ...one, relations: related })).toThrow(
    "balance@1: its 2 partitions are distributed over the workers of a Citus cluster, which is the store 'analytics', and it has the relation 'other': related rows would be on several workers, and are never of one snapshot. Remove the relation, leave 'partitions' out, or name another store.",
  );
  expect(() => configOf({ ...one, relations, snapshots: { everyEvents: 10, keep: 1 } })).toThrow(
    "and it has 'snapshots'",
  );
  const app = await start(ledger());
  await app.stop();
  await expect(start({ ...ledger(), partitions: 2 })).rejects.toThrow(
    'ledger@1: it has 4 partitions, and is declared with 2. The number is fixed, because its rows may be distributed by partition. Declare 4 again, or the other number as ledger@2.',
  );
  const schema = createDatabase({
    url,
    elsewhere: { log: home, storesOf: () => [], others: () => [], placement: 'schema' },
  });
  const found = async (db: Database) =>
    (await examine(home, configOf(ledger()), [{ name: 'analytics', db }])).find(({ subject }) => subject === 'stores');
  expect(await found(store)).toMatchObject({ kind: 'ok' });
  expect(await found(schema)).toMatchObject({
    kind: 'problem',
    message: expect.stringContaining("it was set up with the placement 'partition'"),
  });
  await schema.close();
});
