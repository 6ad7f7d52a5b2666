import { expect, test } from 'vitest';
import { defineProjection, t } from '../../../src/index.ts';
import { diffVersions } from '../../../src/runtime/verification/diff.ts';
import { account, balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { runtimeOverAccounts } from './runtime-over-accounts.ts';

const byOwner = defineProjection({
  name: 'balance',
  version: 3,
  events: account,
  table: { owner: t.text().primaryKey(), opened: t.integer() },
  key: (event) => (event.type === 'Opened' ? event.payload.owner : []),
  evolve: { Opened: (row) => ({ opened: (row?.opened ?? 0) + 1 }) },
});

const projections = [balanceV1, balanceV2, byOwner];
const { runtime, whileCrediting } = await runtimeOverAccounts(projections, 30, () => 'Ada');

test('two versions with the same rows have no differences, while appends continue', async () => {
  await whileCrediting(async () => {
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
  });
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
