import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { defineConfig, defineProjection, globalPosition, type Projection, t } from '../../../src/index.ts';
import { createProjectionUnits } from '../../../src/runtime/ownership/projection-units.ts';
import type { MaintainedUnit } from '../../../src/runtime/processors/maintained-unit.ts';
import { cancelRebuild, requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { readWork } from '../../../src/store/ownership/work.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { lockViews } from '../../../src/store/tables/stable-views.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import {
  account,
  balanceTable,
  balanceV1,
  balanceV2,
  credit,
  openAccount,
  openingsV1,
} from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses } from '../../support/worker-processes.ts';

const setting = settingOfEachTest();
const { stop } = setting;
const workers = createWorkerProcesses();
const step = { actor: 'ann', reason: 'the amounts were wrong' };

// The same table as balance@1 has, but debits are ignored.
const balanceWithBug = defineProjection({
  name: 'balance',
  version: 1,
  events: account,
  table: balanceTable,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }),
    Credited: (row, event) =>
      row && { ...row, amount: row.amount.plus(event.payload.amount), movements: row.movements + 1 },
    Closed: () => null,
  },
});

afterEach(() => workers.killAll());

function start(projections: readonly Projection[], maintain = true): Promise<Runtime> {
  return setting.start(defineConfig({ projections, commands: [openAccount, credit], runtime: { pageSize: 200 } }), {
    maintain,
  });
}

async function traffic(runtime: Runtime, accounts: number, movements: number): Promise<void> {
  for (let id = 0; id < accounts; id++) {
    const events = Array.from({ length: movements }, (_, index) =>
      index % 3 === 0
        ? ({ type: 'Debited', payload: { amount: '1.25' } } as const)
        : ({ type: 'Credited', payload: { amount: '2.50' } } as const),
    );
    await runtime.log.append({
      family: account,
      streamId: `account-${id}`,
      events: [{ type: 'Opened', payload: { owner: `owner-${id % 7}` } }, ...events],
    });
  }
}

async function caughtUp(runtime: Runtime, projection: Projection): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).some(
      ({ name, version, position, state }) =>
        name === projection.name && version === projection.version && position >= horizon && state === 'active',
    ),
  );
  await runtime.versions.refresh();
}

test('a rebuild repairs a table after a bug in evolve is fixed, under traffic, and every read is answered meanwhile', async () => {
  const before = await start([balanceWithBug, openingsV1]);
  await traffic(before, 40, 30);
  await caughtUp(before, balanceWithBug);
  await stop(before);

  const runtime = await start([balanceV1, openingsV1]);
  await caughtUp(runtime, balanceV1);
  expect(await storedTable(runtime.db, balanceV1)).not.toEqual(await foldedTable(runtime.log, balanceV1));
  await requestRebuild(runtime.db, balanceV1, 'read_models', step);
  let rebuilding = true;
  const appends = (async () => {
    for (let n = 0; rebuilding; n++) await runtime.execute(credit, { accountId: `account-${n % 40}`, amount: '1.00' });
  })();
  const answers = (async () => {
    for (let n = 0; rebuilding; n++) {
      const served = runtime.versions.current().served.get('balance');
      const reads = runtime.readModels.open({ snapshot: false });
      const [row] = await reads.findByKeys(served?.projection ?? balanceV1, [[`account-${n % 40}`]], ['amount']);
      expect(row).not.toBeNull();
      await reads.close();
    }
  })();
  await until(async () => (await readRebuilds(runtime.db)).length === 0);
  rebuilding = false;
  await Promise.all([appends, answers]);
  await caughtUp(runtime, balanceV1);
  const now = await until(() => {
    const stored = runtime.versions.stored(balanceV1);
    return stored.tableName === 'balance_v1_g2' && stored;
  });
  expect(await storedTable(runtime.db, now)).toEqual(await foldedTable(runtime.log, balanceV1));
  expect(await runtime.db.query({ text: 'select count(*)::int as rows from read_models.balance' })).toEqual([
    { rows: 40 },
  ]);
  expect(await runtime.db.query({ text: 'select table_name from refold.old_tables where drop_after > now()' })).toEqual(
    [{ table_name: 'balance_v1' }],
  );
});

test('subscribers get the rows of the new table', async () => {
  const before = await start([balanceWithBug]);
  await traffic(before, 3, 3);
  await caughtUp(before, balanceWithBug);
  await stop(before);
  const runtime = await start([balanceV1]);
  await caughtUp(runtime, balanceV1);
  const rows = runtime.live.row(balanceV1, ['account-1'], ['amount'], { after: null });
  const amount = async () => String((await rows.next()).value?.row?.amount);
  expect(await amount()).toBe('5');
  await requestRebuild(runtime.db, balanceV1, 'read_models', step);
  expect(await amount()).toBe('3.75');
  await rows.return?.();
});

test('the stable view stays the same during a rebuild, so dependent objects of users keep working', async () => {
  const runtime = await start([balanceV1]);
  await traffic(runtime, 3, 3);
  await caughtUp(runtime, balanceV1);
  await runtime.db.query({ text: 'create view read_models.owners as select owner from read_models.balance' });
  await requestRebuild(runtime.db, balanceV1, 'read_models', step);
  await until(() => runtime.versions.stored(balanceV1).tableName === 'balance_v1_g2');
  await runtime.db.query({ text: `update read_models.balance_v1_g2 set owner = 'of the new table'` });
  expect(await runtime.db.query({ text: 'select distinct owner from read_models.owners' })).toEqual([
    { owner: 'of the new table' },
  ]);
});

test('another process continues a killed rebuild from its checkpoint', async () => {
  const seeding = await start([balanceV1, balanceV2, openingsV1], false);
  await traffic(seeding, 100, 150);
  const first = await workers.start({ url: setting.database.url, owner: 'first' });
  await until(async () => (await seeding.status()).every(({ lag, state }) => lag === 0n && state === 'active'));
  const halfWay = await seeding.db.transaction(async (tx) => {
    // Its table can't take over meanwhile, so it is certainly killed in between.
    await lockViews(tx, ['balance']);
    await requestRebuild(seeding.db, balanceV1, 'read_models', step);
    const written = await until(async () => {
      const [rebuild] = await readRebuilds(seeding.db);
      return rebuild && rebuild.checkpoint > 0n && rebuild.checkpoint;
    });
    await first.end('SIGKILL');
    return written;
  });
  // Nothing written is done again: no later checkpoint is before this one.
  expect(await readRebuilds(seeding.db)).toHaveLength(1);
  await workers.start({ url: setting.database.url, owner: 'second' });
  await until(async () => {
    const [rebuild] = await readRebuilds(seeding.db);
    if (rebuild) expect(rebuild.checkpoint).toBeGreaterThanOrEqual(halfWay);
    return rebuild === undefined;
  });
  await seeding.versions.refresh();
  const now = seeding.versions.stored(balanceV1);
  expect(now.tableName).toBe('balance_v1_g2');
  expect(await storedTable(seeding.db, now)).toEqual(await foldedTable(seeding.log, balanceV1));
});

test('the first of several requests wins, and the others fail with its requester', async () => {
  const runtime = await start([balanceV1], true);
  const idle = await start([balanceV1], false);
  await caughtUp(runtime, balanceV1);
  await stop(runtime);
  const requests = await Promise.allSettled(
    ['ann', 'bob', 'cat'].map((actor) => requestRebuild(idle.db, balanceV1, 'read_models', { actor, reason: 'a try' })),
  );
  const [rebuild] = await readRebuilds(idle.db);
  const refusals = requests.flatMap((request) => (request.status === 'rejected' ? [request.reason.message] : []));
  expect(refusals).toHaveLength(2);
  for (const message of refusals) {
    expect(message).toBe(
      `balance@1 is being rebuilt already: ${rebuild?.requestedBy} asked for it at ${rebuild?.requestedAt} (a try); nobody yet works on it.`,
    );
  }
});

const credits = {
  name: 'credits',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), amount: t.integer() },
  onError: 'skip',
  setUp: async ({ query, table }) => void (await query(`alter table ${table} add check (amount <> 14)`)),
} as const satisfies Partial<Parameters<typeof defineProjection>[0]>;

const creditsByEvolve = defineProjection({
  ...credits,
  key: (event) => event.streamId,
  evolve: {
    Credited: (_, { payload }) => {
      if (payload.amount === '13') throw new Error('thirteen is bad luck');
      return { amount: Number(payload.amount) };
    },
  },
});

const creditsBySql = defineProjection({
  ...credits,
  evolveSql: {
    events: ['Credited'],
    rows: `select stream_id as account_id, max((payload->>'amount')::integer) as amount from batch group by stream_id`,
    merge: { amount: 'replace' },
  },
});

test.each([
  ['evolve fails', creditsByEvolve, '13'],
  ['the database refuses its row', creditsByEvolve, '14'],
  ['evolveSql fails', creditsBySql, 'much'],
])('an event that the last step of a rebuild skips is logged once that step is committed: %s', async (_, projection, bad) => {
  const runtime = await start([projection], false);
  const { db, log, versions } = runtime;
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const tables = { damageOf: () => null, damages: () => new Map(), look: async () => null };
  const options = { ...runtime, readSchema: 'read_models', projections: [projection], tables, owner: 'test', logger };
  const units = createProjectionUnits({ ...options, freeze: true });
  const started = async (kind: MaintainedUnit['unit']['kind']) => {
    await versions.refresh();
    const { unit, start: startUnit } =
      units(await readWork(db)).find((one) => one.unit.kind === kind) ?? expect.unreachable();
    return startUnit(db, await claimProcessor(db, unit, 'test'));
  };
  const pageUpTo = async (position: bigint, after = 0n) => {
    const upTo = globalPosition(position);
    const read = { after: globalPosition(after), upTo, filter: projection.filter, limit: 10 };
    return { ...read, horizon: upTo, events: (await log.readAll(read)).events };
  };
  const credit = (amount: string) =>
    log.append({ family: account, streamId: 'a', events: [{ type: 'Credited', payload: { amount } }] });

  await credit('1');
  const processor = await started('processor');
  await processor.process(await pageUpTo(1n));
  await requestRebuild(db, projection, 'read_models', step);
  await credit('2');
  const rebuild = await started('rebuild');
  expect(await rebuild.process(await pageUpTo(1n))).toBe('continue');
  // The rebuild is complete at position 2. Its last step has to come as far as the version, which is ahead of it.
  await credit(bad);
  await processor.process(await pageUpTo(3n, 1n));
  expect(lines.splice(0)).toEqual([expect.stringMatching(/^credits@1: 1 events skipped\. /)]);
  expect(await rebuild.process(await pageUpTo(2n, 1n))).toBe('stop');
  expect(rebuild.failure).toBeNull();
  expect(lines).toEqual([expect.stringMatching(/^credits@1: 1 events skipped\. .* position 3 /)]);
  expect(await readRebuilds(db)).toEqual([]);
  expect((await runtime.status())[0]).toMatchObject({ position: 3n, eventsSkipped: 1n });
});

test('a cancelled rebuild leaves everything unchanged', async () => {
  const idle = await start([balanceV1], false);
  await expect(cancelRebuild(idle.db, 'balance', 1, 'read_models', step)).rejects.toThrow(
    'balance@1 is not being rebuilt.',
  );
  await requestRebuild(idle.db, balanceV1, 'read_models', step);
  await cancelRebuild(idle.db, 'balance', 1, 'read_models', step);
  expect(await readRebuilds(idle.db)).toEqual([]);
  const runtime = await start([balanceV1]);
  await until(
    async () =>
      (await runtime.db.query({ text: `select from pg_tables where tablename = 'balance_v1_g2'` })).length === 0,
  );
  expect(runtime.versions.stored(balanceV1).tableName).toBe('balance_v1');
  await requestRebuild(runtime.db, balanceV1, 'read_models', step);
  await until(() => runtime.versions.stored(balanceV1).tableName === 'balance_v1_g2');
});

test('a version that stopped at an event continues when its fixed code has rebuilt it', async () => {
  const fussy = (accepts: boolean) =>
    defineProjection({
      name: 'fussy',
      version: 1,
      events: account,
      table: { accountId: t.text().primaryKey(), credits: t.integer() },
      key: (event) => event.streamId,
      evolve: {
        Opened: () => ({ credits: 0 }),
        Credited: (row, event) => {
          if (event.payload.amount === '13' && !accepts) throw new Error('thirteen is bad luck');
          return row && { credits: row.credits + 1 };
        },
      },
    });
  const before = await start([fussy(false)]);
  await before.log.append({
    family: account,
    streamId: 'a',
    events: [
      { type: 'Opened', payload: { owner: 'Ada' } },
      { type: 'Credited', payload: { amount: '13' } },
      { type: 'Credited', payload: { amount: '1' } },
    ],
  });
  await until(async () => (await before.status()).some(({ processor }) => processor === 'stopped'));
  await requestRebuild(before.db, fussy(true), 'read_models', step);
  await stop(before);
  const mended = fussy(true);
  const runtime = await start([mended]);
  const now = await until(() => {
    const stored = runtime.versions.stored(mended);
    return stored.tableName === 'fussy_v1_g2' && stored;
  });
  await caughtUp(runtime, mended);
  expect(await storedTable(runtime.db, now)).toEqual(new Map([['["a"]', { accountId: 'a', credits: 2 }]]));
});
