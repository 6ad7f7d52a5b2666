import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { defineConfig } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { settingsOfStatements } from '../../src/store/postgres/session-settings.ts';
import { account, balanceV1, balanceV2, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
const running = new Set<Runtime>();

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
});
afterAll(() => database.drop());

type Options = Parameters<typeof defineConfig>[0];

async function start(projections: Options['projections'], options: Pick<Options, 'database' | 'runtime'> = {}) {
  const runtime = await startRuntime({
    config: defineConfig({
      projections: projections ?? [],
      commands: [openAccount, credit],
      gateway: { positionTimeout: 300_000 },
      ...options,
    }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: process.env.LOG ?? 'silent' }),
  });
  running.add(runtime);
  return runtime;
}

async function rows(runtime: Runtime, table: string) {
  return runtime.db.query<Record<string, unknown>>({ text: `select * from read_models.${table} order by 1` });
}

test('declared versions are built from history, become active, and follow the log', async () => {
  const runtime = await start([balanceV1, openingsV1]);
  await runtime.execute(openAccount, { accountId: 'a', owner: 'Ada' });
  const { position } = await runtime.execute(credit, { accountId: 'a', amount: '12.50' });
  await runtime.positions.waitFor(balanceV1, position);
  await runtime.positions.waitFor(openingsV1, position);
  expect(await rows(runtime, 'balance_v1')).toEqual([{ account_id: 'a', owner: 'Ada', amount: '12.50', movements: 1 }]);
  expect(await rows(runtime, 'openings_v1')).toEqual([
    { owner: '*', opened: 1 },
    { owner: 'Ada', opened: 1 },
  ]);
  expect((await runtime.status()).map(({ name, version, state }) => `${name}@${version} ${state}`)).toEqual([
    'balance@1 active',
    'openings@1 active',
  ]);
  expect(await rows(runtime, 'balance')).toEqual(await rows(runtime, 'balance_v1'));
});

test('a version declared later catches up beside the active one, takes over, and can be rolled back', async () => {
  const runtime = await start([balanceV1, balanceV2, openingsV1]);
  const { position } = await runtime.execute(credit, { accountId: 'a', amount: '30' });
  await runtime.positions.waitFor(balanceV1, position);
  await runtime.positions.waitFor(balanceV2, position);
  await until(() => runtime.versions.current().served.get('balance')?.projection.version === 2);
  expect(runtime.versions.current().served.get('balance')).toMatchObject({ active: true });
  expect(await rows(runtime, 'balance')).toEqual([
    { account_id: 'a', owner: 'Ada', amount: '42.50', movements: 2, largest: '30.00' },
  ]);
  expect(await runtime.lifecycle.rollback('balance', { actor: 'test', reason: 'a wrong figure' })).toEqual({
    from: 2,
    to: 1,
  });
  await runtime.versions.refresh();
  expect(runtime.versions.current().served.get('balance')).toMatchObject({ active: true, projection: { version: 1 } });
  expect(await rows(runtime, 'balance')).toEqual([{ account_id: 'a', owner: 'Ada', amount: '42.50', movements: 2 }]);
  const again = await runtime.log.append({ family: account, streamId: 'a', events: [{ type: 'Closed', payload: {} }] });
  await runtime.positions.waitFor(balanceV1, again.position);
  await runtime.positions.waitFor(balanceV2, again.position);
  expect(await rows(runtime, 'balance_v1')).toEqual([]);
  expect(await rows(runtime, 'balance_v2')).toEqual([]);
  await runtime.lifecycle.activate('balance', 2, { actor: 'test', reason: 'it was right' });
});

test('an idempotency key is refused with another input, and returns the first result with the same', async () => {
  const runtime = await start([balanceV1, balanceV2, openingsV1]);
  const first = await runtime.execute(openAccount, { accountId: 'k1', owner: 'Ada' }, { idempotencyKey: 'once' });
  expect(await runtime.execute(openAccount, { accountId: 'k1', owner: 'Ada' }, { idempotencyKey: 'once' })).toEqual(
    first,
  );
  await expect(
    runtime.execute(openAccount, { accountId: 'k2', owner: 'Ada' }, { idempotencyKey: 'once' }),
  ).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
    issues: [
      {
        path: ['idempotencyKey'],
        message: 'this key was used with another input before; a key belongs to one request. Send another key.',
      },
    ],
  });
});

test('a process folds its own appends without a notification or a poll', async () => {
  const seldom = { min: 3_600_000, max: 3_600_000 };
  // A shared connection can't have them set for the session.
  const name = new URL(database.url).pathname.slice(1);
  for (const [setting, value] of Object.entries(settingsOfStatements))
    await database.administer(`alter database ${name} set ${setting} = '${value}'`);
  const runtime = await start([balanceV1, balanceV2, openingsV1], {
    database: { notifications: false },
    runtime: { ownership: 'lease', polling: seldom },
  });
  await until(() => runtime.versions.current().served.get('openings')?.active);
  for (const accountId of ['own 1', 'own 2', 'own 3']) {
    const { position } = await runtime.execute(openAccount, { accountId, owner: 'Own' });
    await runtime.positions.waitFor(openingsV1, position);
  }
  expect(await rows(runtime, 'openings_v1')).toContainEqual({ owner: 'Own', opened: 3 });
});
