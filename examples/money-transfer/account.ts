import { z } from 'zod';
import { CommandRejected, type Decimal, decimal, defineCommand, defineState } from '../../src/index.ts';
import { account } from './events.ts';

type Account =
  | { readonly status: 'None' }
  | { readonly status: 'Open'; readonly balance: Decimal }
  | { readonly status: 'Closed' };

const accountState = defineState(account, (): Account => ({ status: 'None' }), {
  AccountOpened: () => ({ status: 'Open', balance: decimal(0) }),
  MoneyDeposited: (state, { payload }) => withBalance(state, (balance) => balance.plus(payload.amount)),
  MoneyWithdrawn: (state, { payload }) => withBalance(state, (balance) => balance.minus(payload.amount)),
  AccountClosed: () => ({ status: 'Closed' }),
});

/** Named, because a property of another name, such as `from`, should be recognized as an id too. */
export const accountId = z.string().min(1).max(100).meta({ id: 'AccountId' });
export const amount = z.string().regex(/^\d{1,12}(\.\d{1,2})?$/);

export const openAccount = defineCommand({
  name: 'openAccount',
  description: 'Opens an account.',
  input: z.object({ accountId, owner: z.string().min(1).max(200) }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ accountId, owner }, { status }) {
    if (status !== 'None') throw new CommandRejected(`Account '${accountId}' exists already.`);
    return { type: 'AccountOpened', payload: { owner } };
  },
});

export const depositMoney = defineCommand({
  name: 'depositMoney',
  description: 'Puts money into an open account.',
  input: z.object({ accountId, amount }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ accountId, amount }, state) {
    open(accountId, state);
    return { type: 'MoneyDeposited', payload: { amount: exact(amount) } };
  },
});

export const closeAccount = defineCommand({
  name: 'closeAccount',
  description: 'Closes an account that holds no money.',
  input: z.object({ accountId }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ accountId }, state) {
    if (!open(accountId, state).balance.eq(0)) throw new CommandRejected('An account that holds money stays open.');
    return { type: 'AccountClosed', payload: {} };
  },
});

const partOfTransfer = z.object({ accountId, amount, transferId: z.string() });

/** A step of a transfer. */
export const withdrawForTransfer = defineCommand({
  name: 'withdrawForTransfer',
  input: partOfTransfer,
  state: accountState,
  stream: (input) => input.accountId,
  decide({ accountId, amount, transferId }, state) {
    if (open(accountId, state).balance.lt(amount))
      throw new CommandRejected(`Account '${accountId}' holds too little.`);
    return { type: 'MoneyWithdrawn', payload: { amount: exact(amount), transferId } };
  },
});

/** A step of a transfer. */
export const depositForTransfer = defineCommand({
  name: 'depositForTransfer',
  input: partOfTransfer,
  state: accountState,
  stream: (input) => input.accountId,
  decide({ accountId, amount, transferId }, state) {
    open(accountId, state);
    return { type: 'MoneyDeposited', payload: { amount: exact(amount), transferId } };
  },
});

/** Reverses a withdrawal. It is never refused, even if the account was closed meanwhile: money must not vanish. */
export const refundTransfer = defineCommand({
  name: 'refundTransfer',
  input: partOfTransfer,
  events: account,
  stream: (input) => input.accountId,
  decide: ({ amount, transferId }) => ({ type: 'MoneyDeposited', payload: { amount: exact(amount), transferId } }),
});

function open(accountId: string, state: Account): Account & { status: 'Open' } {
  if (state.status === 'Open') return state;
  throw new CommandRejected(
    state.status === 'None' ? `There is no account '${accountId}'.` : `Account '${accountId}' is closed.`,
  );
}

function withBalance(state: Account, change: (balance: Decimal) => Decimal): Account {
  return { status: 'Open', balance: change(state.status === 'Open' ? state.balance : decimal(0)) };
}

function exact(text: string): string {
  return decimal(text).toFixed(2);
}
