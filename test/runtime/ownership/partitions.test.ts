import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { beginning } from '../../../src/events/global-position.ts';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { partitionOf } from '../../../src/projections/projection/partition.ts';
import { createProjectionProcessor } from '../../../src/runtime/processors/projection-processor.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createSetBasedProcessor } from '../../../src/runtime/set-based/set-based-processor.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { advanceCheckpoint, claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { totalsByEvolve, totalsBySql } from '../../support/account-totals.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1, inPartitions, openingsV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { replicateList } from '../live/replicas.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
const running = new Set<Runtime>();

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
  await db.close();
  await database.drop();
});

/** Runs it as a separate process would. */
async function start(owner: string, projections: readonly Projection[], maintain = true): Promise<Runtime> {
  const runtime = await startRuntime({
    config: defineConfig({ projections, runtime: { pageSize: 50, polling: { min: 5, max: 50 } } }),
    url: database.url,
    owner,
    development: false,
    maintain,
    logger: pino({ level: 'silent' }),
  });
  running.add(runtime);
  return runtime;
}

async function stop(runtime: Runtime): Promise<void> {
  running.delete(runtime);
  await runtime.stop();
}

async function registered(name: string) {
  const found = (await readRegistry(db)).find((entry) => entry.name === name);
  if (!found) throw new Error(`'${name}' is not registered`);
  return found;
}

async function caughtUp(name: string): Promise<void> {
  const horizon = await log.horizon();
  await until(async () => (await registered(name)).checkpoint >= horizon);
}

async function tableOf(projection: Projection): Promise<Map<string, unknown>> {
  const { tableName } = await registered(projection.name);
  return storedTable(db, { ...projection, tableName });
}

function balance(name: string, partitions: number, evolve?: Partial<Projection>): Projection {
  const { tableName: _, ...rest } = balanceV1;
  return { ...rest, ...evolve, name, id: `${name}@1`, tableName: `${name}_v1`, partitions } as Projection;
}

describe('a projection in partitions', () => {
  test('is folded by several owners into one table, each its own keys', async () => {
    const projection = balance('spread', 4);
    await traffic(log, 1_000, seeded(1));
    const ownedBy = async (owner: string, name: string) =>
      (await registered(name)).partitions.filter((partition) => partition.owner === owner).length;
    await start('one', [projection, inPartitions(openingsV1, 3)]);
    // Otherwise the second process may find all but one of them free: the spread is even over units, not over the partitions of one version.
    await until(async () => (await ownedBy('one', 'spread')) === 4 && (await ownedBy('one', 'openings')) === 3);
    await start('two', [projection, inPartitions(openingsV1, 3)]);
    await until(async () => (await ownedBy('two', 'spread')) === 2 && (await ownedBy('two', 'openings')) === 1);
    await traffic(log, 1_000, seeded(2));
    await caughtUp('spread');
    await caughtUp('openings');
    expect(await tableOf(projection)).toEqual(await foldedTable(log, projection));
    expect(await tableOf(openingsV1)).toEqual(await foldedTable(log, openingsV1));
    await until(async () => (await registered('spread')).state === 'active');
    expect((await registered('spread')).partitions).toHaveLength(4);
    // Each event has one row, so the partitions' counts add up to all events.
    const [told] = await db.query<{ folded: string; events: string }>({
      text: `
        select
          (select sum(events_folded) from refold.processors where name = 'spread')::text as folded,
          (select count(*) from refold.events where family = 'account')::text as events`,
    });
    expect(told?.folded).toBe(told?.events);
  });

  test('is folded with evolveSql by several owners into one table, each its own keys, and counts each event once', async () => {
    const projection = inPartitions(totalsBySql, 3);
    await traffic(log, 1_000, seeded(11));
    await start('one', [projection]);
    await start('two', [projection]);
    const owners = async () => new Set((await registered('account_totals')).partitions.map(({ owner }) => owner));
    await until(async () => (await owners()).size === 2 && !(await owners()).has(null));
    await traffic(log, 1_000, seeded(12));
    await caughtUp('account_totals');
    expect(await tableOf(projection)).toEqual(await foldedTable(log, totalsByEvolve));
    await until(async () => (await registered('account_totals')).state === 'active');
    const [counted] = await db.query<{ folded: string; events: string }>({
      text: `
        select
          (select sum(events_folded) from refold.processors where name = 'account_totals')::text as folded,
          (select count(*) from refold.events where type <> 'Opened')::text as events`,
    });
    expect(counted?.folded).toBe(counted?.events);
    const verified = await verifyVersion({ db, log, readSchema: 'read_models', projection });
    expect(verified).toMatchObject({ differences: 0 });
  });

  test('folded with evolveSql, a former owner of a partition writes nothing', async () => {
    const projection = inPartitions(totalsBySql, 2);
    await start('gateway', [projection], false);
    await traffic(log, 100, seeded(13));
    const owned = async (owner: string) =>
      createSetBasedProcessor({
        db,
        log,
        readSchema: 'read_models',
        projection,
        fold: projection.sqlFold ?? expect.unreachable(),
        claim: await claimProcessor(
          db,
          { kind: 'processor', name: projection.name, version: projection.version, partition: 1 },
          owner,
        ),
        state: 'active',
        freeze: false,
        logger: pino({ level: 'silent' }),
        onCaughtUp: async () => 'active',
      });
    const former = await owned('former');
    const horizon = await log.horizon();
    const page = { after: beginning, upTo: horizon, horizon, events: [] };
    const owner = await owned('owner');
    await expect(former.process(page)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
    expect((await tableOf(projection)).size).toBe(0);
    await owner.process(page);
    const own = [...(await foldedTable(log, totalsByEvolve))].filter(([key]) => partitionOf(key, 2) === 1);
    expect(await tableOf(projection)).toEqual(new Map(own));
  });

  test('is ready when all its partitions are, at the lowest of their positions', async () => {
    const poisoned = 'account-poison';
    const own = partitionOf(`["${poisoned}"]`, 3);
    const apply: Projection['apply'] = (row, event, key) => {
      if (event.streamId === poisoned) throw new Error('poison');
      return balanceV1.apply(row, event, key);
    };
    const projection = balance('held_up', 3, { apply });
    await log.append({ family: account, streamId: poisoned, events: [{ type: 'Opened', payload: { owner: 'x' } }] });
    await traffic(log, 200, seeded(3));
    const runtime = await start('one', [projection]);
    const horizon = await log.horizon();
    await until(async () => {
      const { partitions } = await registered('held_up');
      return (
        partitions[own]?.status === 'stopped' &&
        partitions.every(({ checkpoint }, partition) => partition === own || checkpoint >= horizon)
      );
    });
    const status = (await runtime.status()).find(({ name }) => name === 'held_up');
    expect(status).toMatchObject({ state: 'failed', processor: 'stopped' });
    expect(status?.position).toBe(status?.partitions[own]?.position);
    expect(status?.partitions.filter(({ error }) => error !== null)).toHaveLength(1);
    await expect(runtime.positions.waitFor(projection, horizon, { timeout: 50 })).rejects.toMatchObject({
      code: 'POSITION_TIMEOUT',
    });
    // With fixed code and another number of partitions, all are ready now.
    await stop(runtime);
    await start('two', [balance('held_up', 2)]);
    await until(async () => (await registered('held_up')).state === 'active');
    await caughtUp('held_up');
    expect(await tableOf(projection)).toEqual(await foldedTable(log, balanceV1));
  });

  test.each([
    'an event that evolve fails on',
    'a row that the database refuses',
  ])('is not complete while a partition has met %s and not yet stopped', async (met) => {
    const poisoned = 'account-poison';
    const own = partitionOf(`["${poisoned}"]`, 2);
    const apply: Projection['apply'] = (row, event, key) => {
      if (event.streamId === poisoned) throw new Error('poison');
      return balanceV1.apply(row, event, key);
    };
    const setUp: Projection['setUp'] = async ({ query, table }) =>
      void (await query(`alter table ${table} add check (owner <> 'poison')`));
    const projection = balance('raced', 2, met.startsWith('a row') ? { setUp } : { apply });
    await traffic(log, 20, seeded(5));
    const events = [{ type: 'Opened', payload: { owner: 'poison' } } as const];
    await log.append({ family: account, streamId: poisoned, events });
    const { lifecycle } = await start('one', [projection], false);
    const horizon = await log.horizon();
    const after = beginning;
    const page = await log.readAll({ after, upTo: horizon, filter: projection.filter, limit: 100 });
    const outcomes: string[] = [];
    for (const partition of [own, 1 - own]) {
      const claim = await claimProcessor(db, { kind: 'processor', name: 'raced', version: 1, partition }, 'one');
      const processor = createProjectionProcessor({
        ...{ db, log, readSchema: 'read_models', projection, claim, state: 'building', freeze: false },
        logger: pino({ level: 'silent' }),
        onCaughtUp: ({ goal }) => lifecycle.caughtUp(projection, 'one', { db, claim, goal }),
      });
      outcomes.push(await processor.process({ ...page, after, horizon }));
    }
    expect(outcomes).toEqual(['stop', 'continue']);
    const { state, partitions } = await registered('raced');
    expect(partitions.map(({ checkpoint }) => checkpoint >= horizon - 1n)).toEqual([true, true]);
    expect(state).toBe('building');
  });

  test('ends waits for a position when the last partition has reached it', async () => {
    const projection = balance('awaited', 3);
    const runtime = await start('one', [projection]);
    await until(async () => (await registered('awaited')).state === 'active');
    for (let round = 0; round < 10; round++) {
      await traffic(log, 20, seeded(round));
      const position = await log.horizon();
      await runtime.positions.waitFor(projection, position, { timeout: 300_000 });
      expect((await registered('awaited')).partitions.every(({ checkpoint }) => checkpoint >= position)).toBe(true);
    }
  });

  test('a former owner of a partition can write nothing after another claim or a change of the number of partitions', async () => {
    const projection = balance('fenced', 2);
    await stop(await start('one', [projection]));
    const unit = { kind: 'processor', name: 'fenced', version: 1, partition: 1 } as const;
    const write = async (claim: Awaited<ReturnType<typeof claimProcessor>>) => {
      const { checkpoint: from } = claim;
      const to = (from + 1n) as typeof from; // any position
      await advanceCheckpoint(db, { claim, from, to, events: 1, rows: 1, busyMs: 0 });
    };
    const former = await claimProcessor(db, unit, 'former');
    const latter = await claimProcessor(db, unit, 'latter');
    await expect(write(former)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
    await write(latter);
    await stop(await start('three', [balance('fenced', 3)]));
    await expect(write(await Promise.resolve(latter))).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
    await stop(await start('one', [balance('fenced', 1)]));
    await expect(write(latter)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  });

  test('notifies subscribers of every change, during its activation and when the number of partitions changes', async () => {
    const projection = (partitions: number) => balance('watched', partitions);
    await traffic(log, 500, seeded(10));
    const watcher = await start('one', [projection(3)]);
    const columns = Object.keys(balanceV1.columns);
    // Subscribes from the first moment: a change that a partition makes during the activation must not be missed.
    await until(async () => {
      await traffic(log, 5, seeded(11));
      return watcher.versions.current().served.get('watched')?.active;
    });
    const served = watcher.versions.current().served.get('watched')?.projection;
    if (!served) throw new Error('not served');
    const list = watcher.live.list(served, { where: null, orderBy: [], first: 500, columns }, { after: null });
    const replica = replicateList(balanceV1, list, async () => {});
    for (const partitions of [2, 5, 1]) {
      for (let round = 0; round < 5; round++) await traffic(log, 30, seeded(100 * partitions + round));
      await start(`with-${partitions}`, [projection(partitions)]);
    }
    await traffic(log, 100, seeded(12));
    await caughtUp('watched');
    const expected = await foldedTable(log, balanceV1);
    await until(() =>
      isDeepStrictEqual(
        new Map([...(replica.state ?? [])].map(([text, row]) => [text, balanceV1.codec.encode(row)])),
        expected,
      ),
    );
    expect(replica.problems).toEqual([]);
    await list.return?.();
  });

  test('is rebuilt by one owner, under traffic, and continues in partitions', async () => {
    const projection = balance('rebuilt', 3);
    const runtime = await start('one', [projection]);
    await traffic(log, 500, seeded(5));
    await until(async () => (await registered('rebuilt')).state === 'active');
    await caughtUp('rebuilt');
    await db.query({ text: 'delete from read_models.rebuilt_v1' });
    await requestRebuild(runtime.db, projection, 'read_models', { actor: 'test', reason: 'test' });
    await until(async () => {
      await traffic(log, 20, seeded(6));
      return (await registered('rebuilt')).tableName !== 'rebuilt_v1';
    });
    await traffic(log, 200, seeded(7));
    await caughtUp('rebuilt');
    expect(await tableOf(projection)).toEqual(await foldedTable(log, projection));
  });

  test('a verification compares each row as of the position of its own partition, also after a change of their number', async () => {
    const poisoned = 'account-7';
    const apply: Projection['apply'] = (row, event, key) => {
      if (event.streamId === poisoned && event.position > 100n) throw new Error('poison');
      return balanceV1.apply(row, event, key);
    };
    const projection = (partitions: number) => balance('verified', partitions, { apply });
    const verified = () => verifyVersion({ db, log, readSchema: 'read_models', projection: balance('verified', 1) });
    await traffic(log, 3_000, seeded(8));
    for (const partitions of [4, 3, 5]) {
      const runtime = await start('one', [projection(partitions)]);
      // All partitions but the failing one continue: their rows are ahead of the version's position.
      await until(async () => {
        const horizon = await log.horizon();
        const all = (await registered('verified')).partitions;
        const ahead = all.filter(({ checkpoint }) => checkpoint >= horizon).length;
        return all.length === partitions && ahead === partitions - 1 && all.some(({ status }) => status === 'stopped');
      });
      expect((await verified()).differences).toBe(0);
      await stop(runtime);
      await traffic(log, 300, seeded(partitions));
    }
    expect((await registered('verified')).partitions.some(({ floors }) => floors.length > 0)).toBe(true);
    expect((await verified()).differences).toBe(0);
    await db.query({
      text: `
        update read_models.verified_v1
        set movements = movements + 1
        where account_id = (select min(account_id) from read_models.verified_v1)`,
    });
    expect((await verified()).differences).toBe(1);
  });
});

test('a version that is held stays held when the number of its partitions changes', async () => {
  await traffic(log, 20, seeded(6));
  const { activation, ...before } = balance('held', 1);
  const waiting = { ...before, activation: { ...activation, minReadySeconds: 3600 } };
  const runtime = await start('one', [waiting]);
  await until(async () => (await registered('held')).state === 'ready');
  await runtime.lifecycle.hold(waiting, 'verification', { actor: 'ann', reason: 'look at it first' });
  await stop(runtime);
  await start('two', [balance('held', 3)]);
  await until(async () => (await registered('held')).partitions.every(({ status }) => status === 'running'));
  await caughtUp('held');
  const hold = { state: 'ready', heldReason: 'look at it first', heldBy: 'verification' };
  expect(await registered('held')).toMatchObject(hold);
});
