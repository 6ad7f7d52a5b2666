import { defineProjection, t } from '../../src/index.ts';
import { account, transfer } from './events.ts';

export const accountBalanceV1 = defineProjection({
  name: 'account_balance',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), owner: t.text(), balance: t.decimal(14, 2), open: t.boolean() },
  key: (event) => event.streamId,
  evolve: {
    AccountOpened: (_, { payload }) => ({ owner: payload.owner, balance: '0', open: true }),
    MoneyDeposited: (row, { payload }) => row && { ...row, balance: row.balance.plus(payload.amount) },
    MoneyWithdrawn: (row, { payload }) => row && { ...row, balance: row.balance.minus(payload.amount) },
    AccountClosed: (row) => row && { ...row, open: false },
  },
});

export const moneyTransferV1 = defineProjection({
  name: 'money_transfer',
  version: 1,
  events: transfer,
  table: {
    transferId: t.text().primaryKey(),
    from: t.text().index(),
    to: t.text().index(),
    amount: t.decimal(14, 2),
    status: t.enum(['Requested', 'Completed', 'Failed']).index(),
    reason: t.text().nullable(),
  },
  key: (event) => event.streamId,
  evolve: {
    TransferRequested: (_, { payload }) => ({ ...payload, status: 'Requested', reason: null }),
    TransferCompleted: (row) => row && { ...row, status: 'Completed' },
    TransferFailed: (row, { payload }) => row && { ...row, status: 'Failed', reason: payload.reason },
  },
});
