import { expect, test } from 'vitest';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { balanceV1, openingsV1 } from '../../support/sample-domain.ts';
import { runtimeOverAccounts } from './runtime-over-accounts.ts';

const projections = [balanceV1, openingsV1];
const { runtime, whileCrediting } = await runtimeOverAccounts(projections, 60, (id) => `owner-${id % 7}`);

const verified = (oneOf = 1) =>
  verifyVersion({ db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: balanceV1, oneOf });

test('a table that matches the log has no differences, while appends continue', async () => {
  await whileCrediting(async () => {
    for (let round = 0; round < 5; round++)
      expect(await verified()).toMatchObject({ rowsCompared: 60, differences: 0 });
  });
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
