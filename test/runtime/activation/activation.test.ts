import { expect, test } from 'vitest';
import { type ActivationOptions, defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import type { VersionStatus } from '../../../src/runtime/monitoring/status.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceTable, balanceV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;

function start(...projections: readonly Projection[]): Promise<Runtime> {
  return setting.start(defineConfig({ projections, events: [account] }));
}

async function status(runtime: Runtime, version: number): Promise<VersionStatus | undefined> {
  return (await runtime.status()).find((one) => one.name === 'balance' && one.version === version);
}

const becomes = (runtime: Runtime, version: number, state: string) =>
  until(async () => (await status(runtime, version))?.state === state);

async function history(runtime: Runtime, version: number): Promise<string[]> {
  const steps = await runtime.db.query<{ step: string }>({
    text: `select concat_ws(' ', coalesce(from_state, '-'), to_state, actor, reason) as step
      from refold.transitions where version = ${version} order by id`,
  });
  return steps.map(({ step }) => step);
}

/** A log with a few accounts, served by balance@1. */
async function served(): Promise<Runtime> {
  const runtime = await start(balanceV1);
  for (const id of ['a', 'b', 'c']) {
    await runtime.log.append({
      family: account,
      streamId: id,
      events: [
        { type: 'Opened', payload: { owner: 'Ada' } },
        { type: 'Credited', payload: { amount: '1.50' } },
      ],
    });
  }
  const horizon = await runtime.log.horizon();
  await until(async () => ((await status(runtime, 1))?.position ?? 0n) >= horizon);
  return runtime;
}

/** The same rows as balance@1, except for the accounts that `wrong` names. */
function next(activation: ActivationOptions, wrong: readonly string[] = []): Projection {
  return defineProjection({
    name: 'balance',
    version: 2,
    events: account,
    table: balanceTable,
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }),
      Credited: (row, event) =>
        row && {
          ...row,
          amount: row.amount.plus(event.payload.amount),
          movements: row.movements + (wrong.includes(event.streamId) ? 2 : 1),
        },
      Debited: (row, event) => row && { ...row, amount: row.amount.minus(event.payload.amount) },
      Closed: () => null,
    },
    activation,
  });
}

/** Waits for the activator, as any version with a condition. */
const checkedAfter = defineProjection({
  name: 'opened',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), owner: t.text() },
  key: (event) => event.streamId,
  evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
  activation: { minReadySeconds: 0.001 },
});

/** Without the amount, and with a count of another type. */
function breaking(activation: ActivationOptions = {}): Projection {
  return defineProjection({
    name: 'balance',
    version: 2,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text().index(), movements: t.bigint() },
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, event) => ({ owner: event.payload.owner, movements: 0 }),
      Credited: (row) => row && { ...row, movements: row.movements + 1n },
    },
    activation,
  });
}

test('a version that would break clients is held at ready until an operator activates it', async () => {
  await stop(await served());
  const runtime = await start(balanceV1, breaking());
  await becomes(runtime, 2, 'ready');
  const held = await until(async () => (await status(runtime, 2))?.heldReason);
  // Two columns; their filters, orders and aggregates are not counted.
  expect(held).toMatch(
    /^It would break clients of balance@1: 2 breaking changes, see 'refold changes balance@2'\. .*'refold activate balance@2 --breaking' activates it/,
  );
  const { changes } = await runtime.schemaEvolution.changes('balance', 2);
  expect(changes).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ message: 'Balance.amount was removed.', origin: 'Balance.amount' }),
      expect.objectContaining({ message: 'BalanceFilter.amount was removed.', origin: 'Balance.amount' }),
      expect.objectContaining({ message: 'Balance.movements changed type from Int! to BigInt!.' }),
    ]),
  );
  await until(() => setting.messages.some((line) => line.startsWith('balance@2 is held at ready: It would break')));
  expect(runtime.versions.current().served.get('balance')?.projection.version).toBe(1);

  const step = { actor: 'ann', reason: 'nobody reads it' };
  await expect(runtime.lifecycle.activate('balance', 2, step)).rejects.toMatchObject({
    code: 'INVALID_TRANSITION',
    message: expect.stringMatching(
      /^balance@2 would break clients of balance@1: 2 breaking changes, see 'refold changes balance@2'\.(?: .*)? Say --breaking \(allowBreaking\) if that is meant\.$/,
    ),
    fields: { breaking: expect.arrayContaining(['BalanceFilter.amount was removed.']) },
  });
  expect((await status(runtime, 2))?.state).toBe('ready');
  await runtime.lifecycle.activate('balance', 2, step, { allowBreaking: true });
  expect(await status(runtime, 2)).toMatchObject({ state: 'active', heldReason: null });
});

test('a version held for its GraphQL types becomes active when its declaration allows it', async () => {
  await stop(await served());
  const holding = await start(balanceV1, breaking());
  await until(async () => (await status(holding, 2))?.heldReason);
  await stop(holding);
  const allowing = await start(balanceV1, breaking({ breaking: 'allow' }));
  await becomes(allowing, 2, 'active');
});

test('a version is compared with the one that answers, even if this program does not declare that one', async () => {
  await stop(await served());
  const two = await start(balanceV1, next({}));
  await becomes(two, 2, 'active');
  await stop(two);
  const third = defineProjection({
    name: 'balance',
    version: 3,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
  });
  const runtime = await start(balanceV1, third);
  expect(await until(async () => (await status(runtime, 3))?.heldReason)).toMatch(
    /^It would break clients of balance@2: \d breaking changes, see 'refold changes balance@3'\. /,
  );
});

test('a version that has served no clients cannot break any', async () => {
  const runtime = await start(balanceV1, breaking());
  await becomes(runtime, 2, 'active');
});

test('a version becomes active when its rows match the log, and the audit log records it', async () => {
  await stop(await served());
  const runtime = await start(balanceV1, next({ verify: true, compareWith: 'previous' }));
  await becomes(runtime, 2, 'active');
  expect(await history(runtime, 2)).toEqual([
    '- building test declared',
    'building ready test caught up',
    "ready active test caught up, 3 rows are what the log says, 3 rows are those of balance@1, activation 'auto'",
  ]);
});

test('rows that do not match the log hold a version at ready; after a rebuild it becomes active', async () => {
  await stop(await served());
  const manual = await start(balanceV1, next({ by: 'manual' }));
  await becomes(manual, 2, 'ready');
  await stop(manual);
  const db = createDatabase({ url: setting.database.url });
  await db.query({ text: `update read_models.balance_v2 set movements = 7 where account_id = 'b'` });
  await db.close();

  const runtime = await start(balanceV1, next({ verify: true }));
  const held = await until(async () => (await status(runtime, 2))?.heldReason);
  expect(held).toMatch(
    /^1 of 3 rows compared at position 6 are not what the log says \(\["b"\] different in movements\)\. 'refold verify balance@2' shows them, 'refold rebuild balance@2' rebuilds them\.$/,
  );
  expect((await status(runtime, 2))?.state).toBe('ready');
  await requestRebuild(runtime.db, next({ verify: true }), 'read_models', { actor: 'ann', reason: 'it differs' });
  await becomes(runtime, 2, 'active');
});

test('rows that differ from the previous version in compared columns hold a version at ready', async () => {
  await stop(await served());
  const runtime = await start(balanceV1, next({ compareWith: 'previous' }, ['a', 'c']));
  expect(await until(async () => (await status(runtime, 2))?.heldReason)).toBe(
    "Of 3 rows compared with balance@1 at position 6, these differ: movements in 2. 'refold diff balance@1 balance@2' shows them.",
  );
  await runtime.lifecycle.activate('balance', 2, { actor: 'ann', reason: 'the new figures are right' });
  expect((await status(runtime, 2))?.state).toBe('active');
});

test('columns that are not compared may differ', async () => {
  await stop(await served());
  const runtime = await start(balanceV1, next({ compareWith: { columns: ['owner', 'amount'] } }, ['a']));
  await becomes(runtime, 2, 'active');
});

test('a version stays at ready for the time that its declaration gives', async () => {
  await stop(await served());
  const runtime = await start(balanceV1, next({ minReadySeconds: 3600 }));
  await becomes(runtime, 2, 'ready');
  await runtime.db.query({
    text: `update refold.projections set state_changed_at = now() - interval '59 minutes' where version = 2`,
  });
  await until(() => setting.messages.includes('balance@2 has caught up and is ready'));
  expect(await status(runtime, 2)).toMatchObject({ state: 'ready', heldReason: null });
  await runtime.db.query({
    text: `update refold.projections set state_changed_at = now() - interval '61 minutes' where version = 2`,
  });
  await becomes(runtime, 2, 'active');
});

test('a version waits at ready while its next event is older than its declaration allows', async () => {
  const first = await served();
  await stop(first);
  const manual = await start(balanceV1, next({ by: 'manual' }));
  await becomes(manual, 2, 'ready');
  await stop(manual);
  const appending = await start(balanceV1);
  await appending.log.append({
    family: account,
    streamId: 'd',
    events: [{ type: 'Opened', payload: { owner: 'Bob' } }],
  });
  await stop(appending);
  const db = createDatabase({ url: setting.database.url });
  const runtime = await db.transaction(async (tx) => {
    await tx.query({ text: 'lock table read_models.balance_v2' });
    const waiting = await start(balanceV1, next({ maxLagSeconds: 0 }), checkedAfter);
    await until(async () => (await status(waiting, 2))?.processor === 'running');
    // The versions that wait are checked in the order of their declarations, so balance@2 has been checked when this one is active.
    await until(async () =>
      (await waiting.status()).some(({ name, state }) => name === checkedAfter.name && state === 'active'),
    );
    expect(await status(waiting, 2)).toMatchObject({ state: 'ready', lag: 1n });
    return waiting;
  });
  await becomes(runtime, 2, 'active');
  await db.close();
});
