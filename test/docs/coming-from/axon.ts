import { z } from 'zod';
import { CommandRejected, defineCommand, defineEvents, defineProjection, defineState, t } from '../../../src/index.ts';

export const account = defineEvents('account', {
  Deposited: z.object({ cents: z.int() }),
  Withdrawn: z.object({ cents: z.int() }),
});

const accountState = defineState(
  account,
  () => ({ balance: 0 }),
  {
    Deposited: ({ balance }, { payload }) => ({ balance: balance + payload.cents }),
    Withdrawn: ({ balance }, { payload }) => ({ balance: balance - payload.cents }),
  },
  { snapshotEvery: 100 },
);

export const withdraw = defineCommand({
  name: 'withdraw',
  input: z.object({ accountId: z.string(), cents: z.int().positive() }),
  state: accountState,
  stream: ({ accountId }) => accountId,
  decide({ cents }, { balance }) {
    if (balance < cents) throw new CommandRejected('The account does not hold that much.', { balance });
    return { type: 'Withdrawn', payload: { cents } };
  },
});

export const accountBalanceV1 = defineProjection({
  name: 'account_balance',
  version: 1,
  events: account,
  partitions: 4,
  onError: 'dead-letter',
  table: { accountId: t.text().primaryKey(), cents: t.bigint() },
  key: (event) => event.streamId,
  evolve: {
    Deposited: (row, { payload }) => ({ cents: (row?.cents ?? 0n) + BigInt(payload.cents) }),
    Withdrawn: (row, { payload }) => ({ cents: (row?.cents ?? 0n) - BigInt(payload.cents) }),
  },
});
