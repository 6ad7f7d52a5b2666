import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Projection } from '../../../src/index.ts';
import { goLive } from '../../../src/runtime/activation/go-live.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace, restoreSnapshot } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { readInlineVersions } from '../../../src/store/registry/inline-versions.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { dropOldTables } from '../../../src/store/tables/old-tables.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { storedTable } from '../../support/folded-table.ts';
import { countingMovements, inlineBalance, inlineOpenings } from '../../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  open,
  statusOf,
  untilLive,
} from '../../support/inline-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses } from '../../support/worker-processes.ts';

let setting: InlineSetting;
const workers = createWorkerProcesses('runtime/processors/inline-worker-process.ts');
const step = { actor: 'ann', reason: 'a test' };

beforeEach(async () => {
  setting = await createInlineSetting();
});
afterEach(async () => {
  await workers.killAll();
  await setting.close();
});

/** Appends to 200 streams repeatedly, with that many callers, until it is stopped; returns the number of appends. */
function steadyAppends(logs: readonly EventLog[], callers: number): () => Promise<number> {
  let going = true;
  let appended = 0;
  const work = Array.from({ length: callers }, async (_, caller) => {
    const log = logs[caller % logs.length] as EventLog; // it is not empty
    while (going) await log.append(creditOf(`account-${(appended++ * 7 + caller) % 200}`));
  });
  return async () => {
    going = false;
    await Promise.all(work);
    return appended;
  };
}

async function rebuilt(runtime: Runtime, projection: Projection): Promise<void> {
  await requestRebuild(runtime.db, projection, 'read_models', step);
  await until(async () => (await readRebuilds(runtime.db)).length === 0);
}

test('a rebuild under steady appends to 200 streams ends, loses nothing, and appends fold into its table', async () => {
  const processes = await Promise.all([1, 2].map(() => setting.start([inlineBalance, inlineOpenings])));
  const [first] = processes as [Runtime];
  await untilLive(first, inlineBalance, inlineOpenings);
  await Promise.all(Array.from({ length: 200 }, (_, n) => open(first, `account-${n}`, `owner-${n % 9}`)));
  const end = steadyAppends(
    processes.map(({ log }) => log),
    16,
  );
  await rebuilt(first, inlineBalance);
  await rebuilt(first, inlineOpenings);
  expect(await end()).toBeGreaterThan(0);
  await first.versions.refresh();
  expect(first.versions.stored(inlineBalance).tableName).toBe('inline_balance_v1_g2');
  await untilLive(first, inlineBalance, inlineOpenings);
  await Promise.all(Array.from({ length: 50 }, (_, n) => first.log.append(creditOf(`account-${n}`))));
  await untilLive(first, inlineBalance, inlineOpenings);
  for (const projection of [inlineBalance, inlineOpenings]) await expectRight(first, projection);
});

test('two concurrent appends of a process that does not know of a rebuild yet both find the new table', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  const unaware = await setting.start([inlineBalance], { maintain: false });
  await Promise.all(['a', 'b'].map((id) => open(unaware, id)));
  const { tableName } = runtime.versions.stored(inlineBalance);
  await rebuilt(runtime, inlineBalance);
  await untilLive(runtime, inlineBalance);
  // As later, when no running query can read it.
  await runtime.db.query({ text: `update refold.old_tables set drop_after = now() where table_name = '${tableName}'` });
  await until(async () => {
    await dropOldTables(runtime.db); // or the worker drops it
    return (await runtime.db.query({ text: `select from pg_tables where tablename = '${tableName}'` })).length === 0;
  });
  // Each waits for its row, so both have asked for the old table before one of them learns that it is gone.
  const appends = await runtime.db.transaction(async (tx) => {
    for (const id of ['a', 'b']) await runtime.log.append(creditOf(id), tx);
    const first = unaware.log.append(creditOf('a'));
    await until(async () => (await waitingForLocks(runtime)) === 1);
    const second = unaware.log.append(creditOf('b'));
    await until(async () => (await waitingForLocks(runtime)) === 2);
    return [first, second];
  });
  await Promise.all(appends);
  await expectRight(runtime, inlineBalance);
});

test('a rebuild in place and a restored snapshot lose nothing of steady appends, which join again', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await Promise.all(Array.from({ length: 200 }, (_, n) => open(runtime, `account-${n}`)));
  const end = steadyAppends([runtime.log], 8);
  const options = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: inlineBalance };
  const snapshot = await takeSnapshot({ ...options, name: 'inline_balance', version: 1 }, step);
  await rebuildInPlace(options, step);
  await untilLive(runtime, inlineBalance);
  await restoreSnapshot(options, step, { id: snapshot.id });
  await untilLive(runtime, inlineBalance);
  await end();
  await expectRight(runtime, inlineBalance);
});

test('appends continue while a snapshot is copied as a start, for any duration of the copy', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'a');
  const { db, log } = runtime;
  const options = { db, log, readSchema: 'read_models', projection: inlineBalance };
  const { tableName } = await takeSnapshot({ ...options, name: inlineBalance.name, version: 1 }, step);
  for (const begin of [restoreSnapshot, rebuildInPlace]) {
    await untilLive(runtime, inlineBalance);
    const [begun] = await db.transaction(async (tx) => {
      // The copy waits for this lock, as it would take long for a large table.
      await tx.query({ text: `lock table read_models."${tableName}"` });
      const beginning = begin(options, step, 'latest');
      await until(async () => (await waitingForLocks(runtime, 'relation')) > 0);
      await log.append(creditOf('a'));
      return [beginning];
    });
    await begun;
    await until(async () => (await statusOf(runtime, inlineBalance))?.state === 'active');
  }
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
});

test('an append that spans the end of a rebuild is in the new table', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'a');
  const release = Promise.withResolvers<void>();
  const appended = Promise.withResolvers<void>();
  const spanning = runtime.db.transaction(async (tx) => {
    await runtime.log.append(creditOf('a', '5'), tx);
    appended.resolve();
    await release.promise;
  });
  await appended.promise;
  await requestRebuild(runtime.db, inlineBalance, 'read_models', step);
  // The rebuild waits for the append, and nothing waits behind the rebuild. The version stays live.
  await until(async () => (await readRebuilds(runtime.db)).some(({ eventsFolded }) => eventsFolded > 0n));
  expect((await statusOf(runtime, inlineBalance))?.inline).toBe('live');
  await open(runtime, 'b');
  const behind = runtime.log.append(creditOf('a', '7'));
  expect(await readRebuilds(runtime.db)).toHaveLength(1);
  release.resolve();
  await Promise.all([spanning, behind]);
  await until(async () => (await readRebuilds(runtime.db)).length === 0);
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
  const rows = await storedTable(runtime.db, runtime.versions.stored(inlineBalance));
  expect(rows.get('["a"]')).toMatchObject({ amount: '12' });
});

async function waitingForLocks(runtime: Runtime, locktype = 'advisory'): Promise<number> {
  const rows = await runtime.db.query({
    text: `
      select from pg_locks
      where locktype = $1 and not granted and database = (select oid from pg_database where datname = current_database())`,
    values: [locktype],
  });
  return rows.length;
}

test('appends skip a new version until it is built, and an append that spans that moment is not lost', async () => {
  const seeding = await setting.start([]);
  await traffic(seeding.log, 500, seeded(3));
  const idle = await setting.start([inlineBalance], { maintain: false });
  await open(idle, 'new');
  expect(await readInlineVersions(idle.db)).toMatchObject([{ status: 'building' }]);
  expect((await storedTable(idle.db, inlineBalance)).size).toBe(0);
  const release = Promise.withResolvers<void>();
  const appended = Promise.withResolvers<void>();
  const spanning = idle.db.transaction(async (tx) => {
    await idle.log.append(creditOf('new', '5'), tx);
    appended.resolve();
    await release.promise;
  });
  await appended.promise;
  const worker = await setting.start([inlineBalance]);
  // It is built and answers, but does not join the appends, because one that skips it is still open. Other appends don't wait.
  await until(async () => (await statusOf(worker, inlineBalance))?.state === 'active');
  await Promise.all(Array.from({ length: 20 }, (_, n) => idle.log.append(creditOf(`account-${n}`))));
  expect(
    await goLive({ db: idle.db, log: idle.log, readSchema: 'read_models', freeze: false }, inlineBalance),
  ).toBeNull();
  expect(await readInlineVersions(idle.db)).toMatchObject([{ status: 'building' }]);
  release.resolve();
  await spanning;
  await untilLive(worker, inlineBalance);
  await expectRight(worker, inlineBalance);
  await idle.log.append(creditOf('new', '7'));
  await expectRight(worker, inlineBalance);
});

test('after a first build is killed half-way, appends skip the version, and the next process completes the build', async () => {
  const appender = await setting.start([], { maintain: false });
  for (let n = 0; n < 1000; n += 100)
    await Promise.all(Array.from({ length: 100 }, (_, i) => appender.log.append(creditOf(`account-${(n + i) % 50}`))));
  const killed = await workers.start({ url: setting.database.url, owner: 'killed', killAt: 500 });
  await killed.ended;
  const projection = countingMovements();
  const idle = await setting.start([projection], { maintain: false });
  const before = await storedTable(idle.db, projection); // on a slow machine, the build writes before its end
  await idle.log.append(creditOf('account-7'));
  expect(await readInlineVersions(idle.db)).toMatchObject([{ status: 'building' }]);
  expect(await storedTable(idle.db, projection)).toEqual(before);
  await workers.start({ url: setting.database.url, owner: 'next' });
  await untilLive(idle, projection);
  await expectRight(idle, projection);
  expect((await storedTable(idle.db, projection)).get('["account-7"]')).toMatchObject({ movements: 21 });
  await idle.log.append(creditOf('account-7'));
  expect((await storedTable(idle.db, projection)).get('["account-7"]')).toMatchObject({ movements: 22 });
});

test('after a rebuild is killed half-way, appends fold into the old table, and the next process completes the rebuild', async () => {
  const projection = countingMovements();
  const building = await setting.start([projection]);
  await untilLive(building, projection);
  await Promise.all(Array.from({ length: 1000 }, (_, n) => building.log.append(creditOf(`account-${n % 50}`))));
  await setting.stop(building);
  const idle = await setting.start([projection], { maintain: false });
  await requestRebuild(idle.db, projection, 'read_models', step);
  const killed = await workers.start({ url: setting.database.url, owner: 'killed', killAt: 500 });
  await killed.ended;
  await idle.log.append(creditOf('account-7'));
  expect((await storedTable(idle.db, projection)).get('["account-7"]')).toMatchObject({ movements: 21 });
  await workers.start({ url: setting.database.url, owner: 'next' });
  await until(async () => (await readRebuilds(idle.db)).length === 0);
  await untilLive(idle, projection);
  await idle.log.append(creditOf('account-7'));
  await expectRight(idle, projection);
  expect(idle.versions.stored(projection).tableName).toBe('inline_movements_v1_g2');
});

test('writers that can’t fold take a version out of the appends, its processor maintains it, and it joins them again', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'account-1');
  // Appends as a process that does not declare the version.
  const older = createEventLog(runtime.db, [account]);
  const end = steadyAppends([runtime.log, older], 8);
  // Observed in the writer's own transaction: a few seconds after the last such append the version joins again.
  const passing = async (tx: Queryable) =>
    expect((await readInlineVersions(tx)).map(({ status }) => status)).not.toContain('live');
  const passedAt = await runtime.db.transaction(async (tx) => {
    const appended = await older.append(creditOf('account-1'), tx);
    await passing(tx);
    return appended;
  });
  await runtime.positions.waitFor(inlineBalance, passedAt.position, { timeout: 300_000 });
  await end();
  await runtime.db.query({ text: 'update refold.inline_versions set passed_at = null' });
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
  // An insert without Refold.
  await runtime.db.transaction(async (tx) => {
    await tx.query({
      text: `
        with stream as (
          update refold.streams set version = version + 1 where stream_id = 'account-1' returning version
        )
        insert into refold.events (stream_position, family, stream_id, type, payload)
        select version, 'account', 'account-1', 'Credited', '{"amount": "100.00"}' from stream`,
    });
    await passing(tx);
  });
  await runtime.db.query({ text: 'update refold.inline_versions set passed_at = null' });
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
  // An insert by a role that may not see whether a version has ever been live.
  const role = `writer_${randomUUID().slice(0, 8)}`;
  await runtime.db.transaction(async (tx) => {
    for (const text of [
      `create role ${role}`,
      `grant usage on schema refold to ${role}`,
      `grant all on all tables in schema refold to ${role}`,
      `grant usage on sequence refold.events_position_seq to ${role}`,
      `set local role ${role}`,
      `insert into refold.events (stream_position, family, stream_id, type, payload) values (1, 'account', 'account-of-role', 'Opened', '{"owner": "Ada"}')`,
      'reset role',
      `drop owned by ${role}`,
      `drop role ${role}`,
    ])
      await tx.query({ text });
    await passing(tx);
  });
});

test('appenders that are killed at random leave rows and log consistent', async () => {
  const processes = await Promise.all([1, 2].map(() => setting.start([inlineBalance, inlineOpenings])));
  const [first] = processes as [Runtime];
  await untilLive(first, inlineBalance, inlineOpenings);
  const random = seeded(seed);
  let going = true;
  let failed = 0;
  const appends = processes.flatMap((runtime) =>
    Array.from({ length: 8 }, async () => {
      while (going) {
        const streamId = `account-${Math.floor(random() * 40)}`;
        const work = random() < 0.2 ? open(runtime, streamId, `o${streamId}`) : runtime.log.append(creditOf(streamId));
        await work.catch(() => failed++);
      }
    }),
  );
  // Whether a session has an append in progress when it ends is left to chance.
  for (let round = 0; round < effort(25, 10) || failed === 0; round++) {
    const before = await first.log.head();
    await until(async () => (await first.log.head()) > before + BigInt(Math.floor(random() * 60)));
    await first.db.query({
      text: `
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where datname = current_database() and application_name = 'refold-append' and pid <> pg_backend_pid() and state <> 'idle'`,
    });
    if (round === 10) await requestRebuild(first.db, inlineBalance, 'read_models', step);
  }
  going = false;
  await Promise.all(appends);
  expect(failed).toBeGreaterThan(0);
  await until(async () => (await readRebuilds(first.db)).length === 0);
  await untilLive(first, inlineBalance, inlineOpenings);
  for (const projection of [inlineBalance, inlineOpenings]) await expectRight(first, projection);
});
