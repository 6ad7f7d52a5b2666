import { pino } from 'pino';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import type { OwnershipKind } from '../../src/config/runtime-options.ts';
import { defineConfig, defineProjection, type Projection, t } from '../../src/index.ts';
import {
  discardDeadLetters,
  listDeadLetters,
  recallDiscarded,
  retryDeadLetters,
} from '../../src/runtime/dead-letters/dead-letters.ts';
import { acceptRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { readTableFacts } from '../../src/store/browsing/table-facts.ts';
import { readLeases } from '../../src/store/ownership/leases.ts';
import { readLostOwners } from '../../src/store/ownership/processes.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { addCanaryFigures, readCanaryFigures } from '../../src/store/registry/canaries.ts';
import { readRebuilds } from '../../src/store/registry/rebuilds.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { addShadowResult, readShadows } from '../../src/store/registry/shadows.ts';
import { claimVerification, renewVerification } from '../../src/store/registry/verifications.ts';
import { readTableProblems } from '../../src/store/tables/table-problems.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { account, balanceV1, balanceV2, inPartitions } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// What operators do with versions whose tables are in a Citus cluster.
const cluster = await startCitusCluster();
let log: TestDatabase;
let home: Database;
let url: string;
let store: Database;
const running = new Set<Runtime>();
const step = { actor: 'ann', reason: 'to see' };
afterAll(() => cluster.stop());
beforeEach(async () => {
  log = await createTestDatabase();
  url = await cluster.createStore('schema');
  home = createDatabase({ url: log.url, maxConnections: 2 });
  store = createDatabase({
    url,
    elsewhere: { log: home, placement: 'schema', storesOf: () => [], others: () => [] },
  });
});
afterEach(async () => {
  for (const runtime of running) await stop(runtime);
  await store.close();
  await home.close();
  await log.drop();
});

const inStore = <P extends Projection>(projection: P): P => Object.freeze({ ...projection, store: 'analytics' });

async function start(projections: readonly Projection[], ownership: OwnershipKind = 'advisory'): Promise<Runtime> {
  const config = defineConfig({
    projections: projections.map(inStore),
    readStores: { analytics: { url, placement: 'schema' } },
    runtime: { pageSize: 20, ownership, leaseSeconds: 2 },
  });
  const logger = pino({ level: process.env.LOG ?? 'silent' });
  const runtime = await startRuntime({
    config,
    url: log.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger,
  });
  running.add(runtime);
  return runtime;
}

async function stop(runtime: Runtime): Promise<void> {
  running.delete(runtime);
  await runtime.stop();
}

async function caughtUp(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).every(
      ({ position, state }) => position >= horizon && ['active', 'retired'].includes(state),
    ),
  );
}

/** Credits by account and in total ('*'). The amount '13' fails for accounts. */
function credits(policy: 'skip' | 'dead-letter', fails: boolean, name = 'credits'): Projection {
  return defineProjection({
    name,
    version: 1,
    events: account,
    table: { row: t.text().primaryKey(), credits: t.integer().index(), last: t.text() },
    key: (event) => [event.streamId, '*'],
    evolve: {
      Credited: (row, { payload: { amount } }, key) => {
        if (fails && amount === '13' && key !== '*') throw new Error(`${amount} is bad luck`);
        return { credits: (row?.credits ?? 0) + 1, last: amount };
      },
    },
    onError: policy,
  });
}

async function append(runtime: Runtime, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const amount = index % 10 === 3 ? '13' : '1';
    await runtime.log.append({
      family: account,
      streamId: `account-${index % 7}`,
      events: [{ type: 'Credited', payload: { amount } }],
    });
  }
}

test('dead letters and skips are kept, retried, discarded and recalled there, in partitions, whose number may change', async () => {
  const failing = credits('dead-letter', true);
  const skipping = credits('skip', true, 'skipped_credits');
  let runtime = await start([inPartitions(failing, 2), skipping]);
  await append(runtime, 60);
  await caughtUp(runtime);
  const options = {
    db: store,
    log: runtime.log,
    readSchema: 'read_models',
    projection: inStore(inPartitions(failing, 2)),
  };
  const letters = await listDeadLetters(options);
  expect(letters.filter(({ error }) => error !== null).length).toBeGreaterThan(3);
  const skipped = (await runtime.status()).find(({ name }) => name === 'skipped_credits');
  expect(skipped?.eventsSkipped).toBe(6n);

  const [one] = letters;
  await discardDeadLetters(options, step, JSON.stringify(one?.key));
  expect(await recallDiscarded(options, step)).toBeGreaterThan(0);
  await runtime.rebuilds.request('credits@1', step);
  await until(async () => (await readRebuilds(store)).some(({ heldReason }) => heldReason !== null));
  await acceptRebuild(store, 'credits', 1, step);
  await until(async () => (await readRebuilds(store)).length === 0);
  await runtime.rebuilds.request('credits@1', { ...step, wait: true, inPlace: true });
  await caughtUp(runtime);
  expect(await listDeadLetters(options)).toHaveLength(letters.length);
  await stop(runtime);

  const repaired = credits('dead-letter', false);
  runtime = await start([inPartitions(repaired, 3), skipping]);
  await append(runtime, 30);
  await caughtUp(runtime);
  const projection = inStore(inPartitions(repaired, 3));
  await retryDeadLetters({ ...options, log: runtime.log, projection }, step);
  expect(await listDeadLetters({ ...options, projection })).toEqual([]);
  const stored = (await readRegistry(store)).find(({ name }) => name === 'credits');
  expect(await storedTable(store, { ...repaired, tableName: String(stored?.tableName) })).toEqual(
    await foldedTable(runtime.log, repaired),
  );
});

test('versions are compared, tried on some clients, paused, rolled back and retired, with owners by lease', async () => {
  const runtime = await start(
    [balanceV1, { ...balanceV2, activation: { ...balanceV2.activation, by: 'manual' } }],
    'lease',
  );
  for (const accountId of ['a', 'b'])
    await runtime.log.append({
      family: account,
      streamId: accountId,
      events: [{ type: 'Opened', payload: { owner: 'ada' } }],
    });
  await until(
    async () =>
      (await runtime.status()).filter(({ name, state }) => name === 'balance' && state !== 'building').length === 2,
  );
  await runtime.lifecycle.startCanary('balance', 2, { percent: 10, header: null }, step);
  const figures = { name: 'balance', version: 2, operations: 2, errors: 1, otherOperations: 3, otherErrors: 0 };
  await addCanaryFigures(store, figures);
  expect(await readCanaryFigures(store)).toMatchObject([figures]);
  await runtime.lifecycle.endCanary('balance', step);
  await runtime.schemaEvolution.startShadow('balance', 2, { oneOf: 2 }, step);
  const [shadow] = await runtime.schemaEvolution.shadows();
  for (const outcome of ['different', 'same'] as const)
    await addShadowResult(
      store,
      {
        ...{ name: 'balance', version: 2, startedAt: shadow?.startedAt ?? '', outcome, operation: 'x', position: null },
        differences: outcome === 'same' ? [] : [{ path: 'a', older: '1', newer: '2' }],
      },
      10,
    );
  expect(await readShadows(store)).toMatchObject([{ same: 1, different: 1, examples: [{ path: 'a' }] }]);
  await runtime.schemaEvolution.stopShadow('balance', 2, step);
  await runtime.lifecycle.pause('balance', 1, step);
  await runtime.lifecycle.resume('balance', 1, step);
  await runtime.lifecycle.activate('balance', 2, step);
  await runtime.lifecycle.rollback('balance', step);
  await runtime.lifecycle.activate('balance', 2, step);
  await runtime.lifecycle.retire('balance', 1, step);
  await until(async () =>
    (await readLeases(store, 100)).some(({ unit, owner }) => unit === 'processor balance@2/0' && owner === 'test'),
  );
  expect(await readLostOwners(store, 60)).toEqual([]);
  expect(await readTableProblems(store)).toEqual([]);
  expect(await readTableFacts(store, 'balance', 2)).toMatchObject({ schema: 'read_models', name: 'balance_v2' });
  const wanted = { name: 'balance', version: 2, kind: 'audit', owner: 'test' } as const;
  const claim = await claimVerification(store, wanted);
  expect(claim).toMatchObject(wanted);
  expect(await claimVerification(store, { ...wanted, owner: 'other' })).toBeUndefined();
  expect(claim && (await renewVerification(store, claim))).toBe(true);
});
