import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineConfig, defineProjection, t } from '../../../src/index.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { diffVersions } from '../../../src/runtime/verification/diff.ts';
import { account, balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let runtime: Runtime;

const byOwner = defineProjection({
  name: 'balance',
  version: 3,
  events: account,
  table: { owner: t.text().primaryKey(), opened: t.integer() },
  key: (event) => (event.type === 'Opened' ? event.payload.owner : []),
  evolve: { Opened: (row) => ({ opened: (row?.opened ?? 0) + 1 }) },
});

beforeAll(async () => {
  database = await createTestDatabase();
  runtime = await startRuntime({
    config: defineConfig({ projections: [balanceV1, balanceV2, byOwner] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'silent' }),
  });
  for (let id = 0; id < 30; id++) {
    const events = [
      { type: 'Opened', payload: { owner: 'Ada' } },
      { type: 'Credited', payload: { amount: '10.50' } },
    ] as const;
    await runtime.log.append({ family: account, streamId: `account-${id}`, events: [...events] });
  }
  await caughtUp();
});
afterAll(async () => {
  await runtime.stop();
  await database.drop();
});

async function caughtUp(): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () => (await runtime.status()).every(({ position }) => position >= horizon));
}

test('two versions with the same rows have no differences, while appends continue', async () => {
  let comparing = true;
  const appends = (async () => {
    for (let n = 0; comparing; n++) {
      await runtime.log.append({
        family: account,
        streamId: `account-${n % 30}`,
        events: [{ type: 'Credited', payload: { amount: '1' } }],
      });
    }
  })();
  for (let round = 0; round < 5; round++) {
    // It gives up after a hundred looks, of which a busy machine may find none at the same position.
    const found = await until(() =>
      diffVersions(runtime.db, 'read_models', balanceV1, balanceV2).catch((error) =>
        error.code === 'INVALID_TRANSITION' ? null : Promise.reject(error),
      ),
    );
    expect(found).toMatchObject({
      rows: 30,
      onlyOlder: 0,
      onlyNewer: 0,
      columns: { owner: 0, amount: 0, movements: 0 },
      samples: [],
    });
  }
  comparing = false;
  await appends;
  await caughtUp(); // changes by hand below must not be folded over
});

test('rows and columns that differ are counted, with samples', async () => {
  await runtime.db.query({
    text: `update read_models.balance_v2 set owner = 'Bob' where account_id in ('account-1', 'account-2')`,
  });
  await runtime.db.query({ text: `delete from read_models.balance_v2 where account_id = 'account-3'` });
  await runtime.db.query({ text: `delete from read_models.balance_v1 where account_id = 'account-4'` });
  const result = await diffVersions(runtime.db, 'read_models', balanceV1, balanceV2);
  expect(result).toMatchObject({
    rows: 30,
    onlyOlder: 1,
    onlyNewer: 1,
    columns: { owner: 2, amount: 0, movements: 0 },
  });
  expect(result.samples.map(({ key, older, newer }) => [key[0], older?.owner, newer?.owner]).sort()).toEqual([
    ['account-1', 'Ada', 'Bob'],
    ['account-2', 'Ada', 'Bob'],
    ['account-3', 'Ada', undefined],
    ['account-4', undefined, 'Ada'],
  ]);
});

test('versions with different keys are not compared', async () => {
  await expect(diffVersions(runtime.db, 'read_models', balanceV2, byOwner)).rejects.toThrow(
    "balance@2 and balance@3 have different keys (accountId; owner), so their rows can't be compared.",
  );
});
