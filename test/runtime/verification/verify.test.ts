import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineConfig } from '../../../src/index.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { account, balanceV1, openingsV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let runtime: Runtime;

beforeAll(async () => {
  database = await createTestDatabase();
  runtime = await startRuntime({
    config: defineConfig({ projections: [balanceV1, openingsV1] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'silent' }),
  });
  for (let id = 0; id < 60; id++) {
    const events = [
      { type: 'Opened', payload: { owner: `owner-${id % 7}` } },
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

const verified = (oneOf = 1) =>
  verifyVersion({ db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: balanceV1, oneOf });

test('a table that matches the log has no differences, while appends continue', async () => {
  let verifying = true;
  const appends = (async () => {
    for (let n = 0; verifying; n++) {
      await runtime.log.append({
        family: account,
        streamId: `account-${n % 60}`,
        events: [{ type: 'Credited', payload: { amount: '1' } }],
      });
    }
  })();
  for (let round = 0; round < 5; round++) expect(await verified()).toMatchObject({ rowsCompared: 60, differences: 0 });
  verifying = false;
  await appends;
  await caughtUp(); // changes by hand below must not be folded over
});

test('rows that were changed, removed or added by hand are found and named', async () => {
  await runtime.db.query({
    text: `update read_models.balance_v1 set amount = amount + 0.01, movements = 9 where account_id = 'account-3'`,
  });
  await runtime.db.query({ text: `delete from read_models.balance_v1 where account_id = 'account-4'` });
  await runtime.db.query({ text: `insert into read_models.balance_v1 values ('stranger', 'nobody', 1, 1)` });
  expect(await verified()).toMatchObject({
    rowsCompared: 60,
    differences: 3,
    samples: [
      { key: '["account-3"]', kind: 'different', columns: ['amount', 'movements'] },
      { key: '["stranger"]', kind: 'surplus', columns: [] },
      { key: '["account-4"]', kind: 'missing', columns: [] },
    ],
  });
});

test('a sample compares a part of the rows, and the same part each time', async () => {
  const first = await verified(4);
  expect(first.rowsCompared).toBeGreaterThan(0);
  expect(first.rowsCompared).toBeLessThan(60);
  expect(await verified(4)).toEqual(first);
});
