import { z } from 'zod';
import { CommandRejected, type Decimal, decimal, defineCommand, defineState } from '../../src/index.ts';
import { bankAccount } from './events.ts';

export type Account =
  | { readonly status: 'None' }
  | { readonly status: 'Open'; readonly balance: string; readonly interestUpTo: string | null };

export type OpenAccount = Extract<Account, { status: 'Open' }>;

/** Every booking says what the balance is after it. */
export const accountState = defineState(
  bankAccount,
  (): Account => ({ status: 'None' }),
  {
    AccountOpened: () => ({ status: 'Open', balance: '0.00', interestUpTo: null }),
    Deposited: (account, { payload }) => ({ ...open(account), balance: payload.balance }),
    Withdrawn: (account, { payload }) => ({ ...open(account), balance: payload.balance }),
    TransferSent: (account, { payload }) => ({ ...open(account), balance: payload.balance }),
    TransferReceived: (account, { payload }) => ({ ...open(account), balance: payload.balance }),
    InterestPaid: (_, { payload }) => ({ status: 'Open', balance: payload.balance, interestUpTo: payload.month }),
    InterestCharged: (_, { payload }) => ({ status: 'Open', balance: payload.balance, interestUpTo: payload.month }),
    FeeCharged: (account, { payload }) => ({ ...open(account), balance: payload.balance }),
    Corrected: (account, { payload }) => ({ ...open(account), balance: payload.balance }),
  },
  { snapshotEvery: 100 },
);

/** Why a command was rejected. Clients find it as `details.rejection`, beside the values that a user interface needs. */
export type Rejection =
  | { readonly rejection: 'ACCOUNT_EXISTS'; readonly accountId: string }
  | { readonly rejection: 'NO_ACCOUNT'; readonly accountId: string }
  | {
      readonly rejection: 'OVERDRAFT';
      readonly accountId: string;
      readonly balance: string;
      readonly amount: string;
    }
  | { readonly rejection: 'INTEREST_IS_BOOKED'; readonly accountId: string; readonly upTo: string }
  | { readonly rejection: 'NO_SUCH_BOOKING'; readonly accountId: string; readonly bookingId: string }
  | { readonly rejection: 'TRANSFER_HAS_TWO_SIDES'; readonly accountId: string; readonly bookingId: string };

export const accountId = z.string().min(1).max(100);

/** An amount of a command: above zero, with at most two digits after the point. */
export const amount = z
  .string()
  .regex(/^(?=.*[1-9])\d{1,9}(\.\d{1,2})?$/, "expected an amount such as '12.50', from 0.01 to 999999999.99")
  .meta({ format: 'decimal' });

export const openAccount = defineCommand({
  name: 'openAccount',
  description: 'Opens an account. Its balance is 0.00.',
  input: z.object({ accountId }),
  state: accountState,
  emits: ['AccountOpened'],
  stream: (input) => input.accountId,
  decide({ accountId }, account, { now }) {
    if (account.status !== 'None')
      throw rejected(`Account '${accountId}' exists already.`, { rejection: 'ACCOUNT_EXISTS', accountId });
    return { type: 'AccountOpened', payload: { openedOn: dayOf(now) } };
  },
});

export const deposit = defineCommand({
  name: 'deposit',
  description: 'Pays money into an account.',
  input: z.object({ accountId, amount }),
  state: accountState,
  emits: ['Deposited'],
  stream: (input) => input.accountId,
  decide({ accountId, amount }, account, { now, streamVersion }) {
    const payload = booked(accountId, expectOpen(accountId, account), decimal(amount), { now, streamVersion });
    return { type: 'Deposited', payload };
  },
});

export const withdraw = defineCommand({
  name: 'withdraw',
  description: 'Pays money out of an account, no more than it holds.',
  input: z.object({ accountId, amount }),
  state: accountState,
  emits: ['Withdrawn'],
  stream: (input) => input.accountId,
  decide({ accountId, amount }, account, { now, streamVersion }) {
    const holder = expectCovered(accountId, account, amount);
    return { type: 'Withdrawn', payload: booked(accountId, holder, decimal(amount).times(-1), { now, streamVersion }) };
  },
});

export const transfer = defineCommand({
  name: 'transfer',
  description: 'Moves money from one account to another. Both change, or none.',
  input: z.object({ from: accountId, to: accountId, amount }),
  states: [accountState],
  emits: ['TransferSent', 'TransferReceived'],
  streams: ({ from, to }) => [
    { state: accountState, streamId: from },
    { state: accountState, streamId: to },
  ],
  decide({ from, to, amount }, [sender, receiver], { now, streamVersions: [sent, received] }) {
    const payer = expectCovered(from, sender, amount);
    const payee = expectOpen(to, receiver);
    const debit = booked(from, payer, decimal(amount).times(-1), { now, streamVersion: sent });
    const credit = booked(to, payee, decimal(amount), { now, streamVersion: received });
    return [
      { type: 'TransferSent', payload: { ...debit, counterparty: to } },
      { type: 'TransferReceived', payload: { ...credit, counterparty: from } },
    ];
  },
});

interface When {
  readonly now: string;
  readonly streamVersion: number;
}

/** A booking that changes the balance by this amount. Its id follows from its place in the stream, so it is the same in every decision. */
export function booked(accountId: string, { balance }: OpenAccount, change: Decimal, { now, streamVersion }: When) {
  return {
    bookingId: `${accountId}-${streamVersion + 1}`,
    bookedOn: dayOf(now),
    amount: change.abs().toFixed(2),
    balance: decimal(balance).plus(change).toFixed(2),
  };
}

export function expectOpen(accountId: string, account: Account): OpenAccount {
  if (account.status === 'Open') return account;
  throw rejected(`There is no account '${accountId}'. Open it first.`, { rejection: 'NO_ACCOUNT', accountId });
}

function expectCovered(accountId: string, account: Account, amount: string): OpenAccount {
  const holder = expectOpen(accountId, account);
  const { balance } = holder;
  if (decimal(balance).gte(amount)) return holder;
  throw rejected(`Account '${accountId}' holds ${balance}, less than ${decimal(amount).toFixed(2)}.`, {
    rejection: 'OVERDRAFT',
    accountId,
    balance,
    amount: decimal(amount).toFixed(2),
  });
}

export function rejected(reason: string, rejection: Rejection): CommandRejected {
  return new CommandRejected(reason, rejection);
}

export function dayOf(time: string): string {
  return time.slice(0, 10);
}

/** Imported bookings of an account may come before the one that opens it. */
function open(account: Account): OpenAccount {
  return account.status === 'Open' ? account : { status: 'Open', balance: '0.00', interestUpTo: null };
}
