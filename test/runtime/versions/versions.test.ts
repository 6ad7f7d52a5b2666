import { expect, test } from 'vitest';
import { defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { pointViews } from '../../../src/runtime/versions/version-tables.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
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

const setting = settingOfEachTest();
const { stop } = setting;

function start(
  projections: readonly Projection[],
  options: { development?: boolean; maintain?: boolean } = {},
): Promise<Runtime> {
  const config = defineConfig({ projections, commands: [openAccount, credit], gateway: { positionTimeout: 300_000 } });
  return setting.start(config, options);
}

async function caughtUp(runtime: Runtime, ...projections: Projection[]): Promise<void> {
  const horizon = await runtime.log.horizon();
  for (const projection of projections) {
    await until(async () =>
      (await runtime.status()).some(
        (one) =>
          one.name === projection.name &&
          one.version === projection.version &&
          one.position >= horizon &&
          one.state === 'active',
      ),
    );
  }
  await runtime.versions.refresh();
}

const balanceOtherTable = defineProjection({
  name: 'balance',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), amount: t.decimal(20, 4) },
  key: (event) => event.streamId,
  evolve: { Opened: () => ({ amount: '0' }) },
});

const balanceOtherCode = defineProjection({
  name: 'balance',
  version: 1,
  events: account,
  table: balanceTable,
  key: (event) => event.streamId,
  evolve: { Opened: (_, event) => ({ owner: event.payload.owner.toUpperCase(), amount: '1', movements: 0 }) },
});

test('a changed table under the same version is refused, with the way out, and nothing is written', async () => {
  await stop(await start([balanceV1]));
  await expect(start([balanceOtherTable, openingsV1])).rejects.toMatchObject({
    code: 'PROJECTION_CHANGED',
    message:
      'balance@1: its table is declared differently from the one in the database. Undo the change and declare it as balance@2 beside this version.',
  });
  const db = createDatabase({ url: setting.database.url });
  expect(await db.query({ text: 'select name, version from refold.projections' })).toEqual([
    { name: 'balance', version: 1 },
  ]);
  expect(
    await db.query({ text: `select from pg_tables where schemaname = 'read_models' and tablename = 'openings_v1'` }),
  ).toEqual([]);
  await db.close();
});

test('changed code under the same version causes a warning', async () => {
  await stop(await start([balanceV1]));
  await start([balanceOtherCode]);
  expect(setting.messages).toContain(
    "balance@1: the code of its key or evolve is not the code that built its rows. Rows folded from now on follow the new code, older ones don't. If results differ, declare balance@2; after a bug was fixed, 'refold rebuild balance@1' builds all rows with the new code.",
  );
});

test('in development an edited version is rebuilt', async () => {
  const first = await start([balanceV1], { development: true });
  await first.execute(openAccount, { accountId: 'a', owner: 'Ada' });
  await caughtUp(first, balanceV1);
  await stop(first);
  const second = await start([balanceOtherCode], { development: true });
  await caughtUp(second, balanceOtherCode);
  expect(await storedTable(second.db, balanceOtherCode)).toEqual(
    new Map([['["a"]', { accountId: 'a', owner: 'ADA', amount: '1', movements: 0 }]]),
  );
  await stop(second);
  const third = await start([balanceOtherTable], { development: true });
  await caughtUp(third, balanceOtherTable);
  expect(await storedTable(third.db, balanceOtherTable)).toEqual(new Map([['["a"]', { accountId: 'a', amount: '0' }]]));
});

test('a program without the active version of a projection is refused, until the version is retired', async () => {
  const first = await start([balanceV1]);
  await caughtUp(first, balanceV1);
  await expect(start([openingsV1])).rejects.toMatchObject({
    code: 'PROJECTION_REMOVED',
    message:
      "balance@1 is active, but this program declares no active version of 'balance': its readers would lose it. Declare balance@1 again, or take it out of service with 'refold retire balance@1'.",
  });
  await expect(start([balanceV2])).rejects.toThrow(
    "Declare balance@1 again until balance@2 is active, or take it out of service with 'refold retire balance@1'.",
  );
  await first.lifecycle.retire('balance', 1, { actor: 'test', reason: 'not needed' });
  await stop(first);
  await start([openingsV1]);
});

test('the refusal of a program that declares only a retired version does not advise waiting for that version', async () => {
  const first = await start([balanceV1, balanceV2]);
  await first.lifecycle.retire('balance', 1, { actor: 'test', reason: 'not needed' });
  await expect(start([balanceV1])).rejects.toThrow(
    "Declare balance@2 again, or take it out of service with 'refold retire balance@2'.",
  );
});

test('an older program continues with the version it knows while a newer program serves the next one', async () => {
  const newer = await start([balanceV1, balanceV2]);
  await caughtUp(newer, balanceV1, balanceV2);
  const older = await start([balanceV1]);
  expect(setting.messages).toContain(
    'balance@2 is active, but this program declares no version above balance@1; it serves that one.',
  );
  expect(older.versions.current().served.get('balance')).toMatchObject({ active: true, projection: { version: 1 } });
  expect(newer.versions.current().served.get('balance')).toMatchObject({ active: true, projection: { version: 2 } });
});

test('every transition of a version is in the audit log, with actor and reason', async () => {
  const runtime = await start([balanceV1, balanceV2]);
  await caughtUp(runtime, balanceV1, balanceV2);
  await runtime.lifecycle.rollback('balance', { actor: 'ann', reason: 'wrong figures' });
  await runtime.lifecycle.activate('balance', 2, { actor: 'bob', reason: 'they were right' });
  await runtime.lifecycle.retire('balance', 1, { actor: 'ann', reason: 'nobody reads it' });
  const steps = await runtime.db.query<{ step: string }>({
    text: `select concat_ws(' ', version, coalesce(from_state, '-'), to_state, actor, reason) as step from refold.transitions where version = 2 or actor = 'ann' order by id`,
  });
  expect(steps.map(({ step }) => step)).toEqual([
    '2 - building test declared',
    '2 building ready test the log is empty',
    "2 ready active test the log is empty, activation 'auto'",
    '2 active ready ann wrong figures',
    '2 ready active bob they were right',
    '1 active retired ann nobody reads it',
  ]);
});

test('a rolled back version stays current, and out of service until it is activated by hand', async () => {
  const runtime = await start([balanceV1, balanceV2]);
  await caughtUp(runtime, balanceV1, balanceV2);
  await runtime.lifecycle.rollback('balance', { actor: 'ann', reason: 'wrong figures' });
  await runtime.execute(openAccount, { accountId: 'a', owner: 'Ada' });
  const { position } = await runtime.execute(credit, { accountId: 'a', amount: '1.00' });
  await runtime.positions.waitFor(balanceV2, position);
  await runtime.versions.refresh();
  expect(runtime.versions.stateOf('balance', 2)).toBe('ready');
  expect(await storedTable(runtime.db, balanceV2)).toEqual(await foldedTable(runtime.log, balanceV2));
});

test('impossible transitions are refused, and the error says what to do', async () => {
  const runtime = await start([balanceV1]);
  await caughtUp(runtime, balanceV1);
  const step = { actor: 'ann', reason: 'a try' };
  await expect(runtime.lifecycle.rollback('balance', step)).rejects.toThrow(
    "Can't roll back: only balance@1 is active, so nothing could answer in its place.",
  );
  await expect(runtime.lifecycle.rollback('balanse', step)).rejects.toThrow(
    "Can't roll back: no version of 'balanse' is active",
  );
  await expect(runtime.lifecycle.activate('balance', 1, step)).rejects.toThrow('balance@1 is active already.');
  await expect(runtime.lifecycle.activate('balance', 7, step)).rejects.toThrow(
    "balance@7 is not in the registry; 'refold status' lists the versions.",
  );
});

test('a version declared for manual activation waits at ready', async () => {
  const byHand = defineProjection({
    name: 'openings',
    version: 2,
    events: account,
    table: { owner: t.text().primaryKey(), opened: t.integer() },
    key: (event) => (event.type === 'Opened' ? event.payload.owner : []),
    evolve: { Opened: (row) => ({ opened: (row?.opened ?? 0) + 1 }) },
    activation: 'manual',
  });
  const runtime = await start([openingsV1, byHand]);
  await runtime.execute(openAccount, { accountId: 'a', owner: 'Ada' });
  await until(async () =>
    (await runtime.status()).some((one) => one.version === 2 && one.state === 'ready' && one.lag === 0n),
  );
  await runtime.lifecycle.activate('openings', 2, { actor: 'ann', reason: 'looked right' });
  await until(() => runtime.versions.current().served.get('openings')?.projection.version === 2);
});

test("an event that can't be folded stops only its processor, and the events before it are in the table", async () => {
  const fussy = defineProjection({
    name: 'fussy',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Opened: () => ({ credits: 0 }),
      Credited: (row, event) => {
        if (event.payload.amount === '13') throw new Error('thirteen is bad luck');
        return row && { credits: row.credits + 1 };
      },
    },
  });
  const runtime = await start([balanceV1, fussy]);
  await runtime.execute(openAccount, { accountId: 'a', owner: 'Ada' });
  await runtime.log.append({
    family: account,
    streamId: 'a',
    events: ['1', '2', '13', '4'].map((amount) => ({ type: 'Credited' as const, payload: { amount } })),
  });
  const stopped = await until(async () => (await runtime.status()).find((one) => one.processor === 'stopped'));
  expect(stopped).toMatchObject({
    name: 'fussy',
    position: 3n,
    error: {
      message: "fussy@1: evolve of 'Credited' failed at position 4 (stream 'a', event 4): thirteen is bad luck",
    },
  });
  const last = await runtime.execute(credit, { accountId: 'a', amount: '5.00' });
  await runtime.positions.waitFor(balanceV1, last.position);
  expect(await storedTable(runtime.db, fussy)).toEqual(new Map([['["a"]', { accountId: 'a', credits: 2 }]]));
  expect(await storedTable(runtime.db, balanceV1)).toEqual(await foldedTable(runtime.log, balanceV1));
});

test('an evolve that mutates its row is stopped in development, and the error names its event', async () => {
  const impure = defineProjection({
    name: 'impure',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Opened: () => ({ credits: 0 }),
      Credited: (row) => {
        if (row) (row as { credits: number }).credits++;
        return row;
      },
    },
  });
  const runtime = await start([impure], { development: true });
  await runtime.execute(openAccount, { accountId: 'a', owner: 'Ada' });
  await runtime.execute(credit, { accountId: 'a', amount: '1.00' });
  const stopped = await until(async () => (await runtime.status()).find((one) => one.processor === 'stopped'));
  expect(stopped.error?.message).toMatch(
    /^impure@1: evolve of 'Credited' failed at position 2 .* Rows and events are immutable: return a new row instead of changing the old one\.$/,
  );
});

test('two versions that become active at the same moment share one stable view', async () => {
  const runtime = await start([balanceV1, balanceV2], { maintain: false });
  await runtime.db.query({ text: 'drop view read_models.balance' });
  let other: Promise<boolean> | undefined;
  await runtime.db.transaction(async (tx) => {
    await pointViews(tx, 'read_models', ['balance']);
    other = runtime.db.transaction((next) => pointViews(next, 'read_models', ['balance']));
    // Locks of this database only: tests of other files wait for locks, too.
    const waiting = `
      select from pg_locks
      where locktype = 'advisory'
        and not granted
        and database = (select oid from pg_database where datname = current_database())`;
    await until(async () => (await runtime.db.query({ text: waiting })).length > 0);
  });
  await other;
  expect(await runtime.db.query({ text: 'select from read_models.balance' })).toEqual([]);
});
