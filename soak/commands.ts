import { z } from 'zod';
import { account, order } from '../chaos/domain.ts';
import { CommandRejected, defineCommand, defineState } from '../src/index.ts';
import { families } from '../test/refold/things.ts';

/** The clients' commands on accounts, orders and things. `append` is the command's number in the ledger. */
type AccountState = { readonly isOpen: boolean };

const accountState = defineState(
  account,
  (): AccountState => ({ isOpen: false }),
  { Opened: () => ({ isOpen: true }), Closed: () => ({ isOpen: false }) },
  { snapshotEvery: 20 },
);

const part = 0;
const accountId = z.string().min(1).max(100);
const append = z.int();
const amount = z.string().regex(/^\d+\.\d\d$/);

function expectOpen({ isOpen }: AccountState): void {
  if (!isOpen) throw new CommandRejected('The account is not open.');
}

const openAccount = defineCommand({
  name: 'openAccount',
  input: z.object({ accountId, append, owner: z.string() }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ append, owner }, { isOpen }) {
    if (isOpen) throw new CommandRejected('The account is open already.');
    return { type: 'Opened', payload: { append, part, owner } };
  },
});

const credit = defineCommand({
  name: 'credit',
  input: z.object({ accountId, append, amount, poison: z.enum(['account', 'group']).optional() }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ append, amount, poison }, state) {
    expectOpen(state);
    return { type: 'Credited', payload: { append, part, amount, ...(poison ? { poison } : {}) } };
  },
});

const debit = defineCommand({
  name: 'debit',
  input: z.object({ accountId, append, amount }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ append, amount }, state) {
    expectOpen(state);
    return { type: 'Debited', payload: { append, part, amount } };
  },
});

const closeAccount = defineCommand({
  name: 'closeAccount',
  input: z.object({ accountId, append }),
  state: accountState,
  stream: (input) => input.accountId,
  decide({ append }, state) {
    expectOpen(state);
    return { type: 'Closed', payload: { append, part } };
  },
});

const placeOrder = defineCommand({
  name: 'placeOrder',
  input: z.object({
    orderId: z.string(),
    append,
    customer: z.string(),
    lines: z.array(z.object({ product: z.string(), quantity: z.int() })).max(10),
  }),
  state: defineState(order, () => null, {}),
  stream: (input) => input.orderId,
  decide: ({ append, customer, lines }) => ({ type: 'Placed', payload: { append, part, customer, lines } }),
});

/** Sets all columns of a thing, an owner or a place. `columns` is JSON, because it has a column of every kind. */
const setter = (name: string, family: (typeof families)[keyof typeof families]) =>
  defineCommand({
    name,
    input: z.object({ id: z.string(), columns: z.string() }),
    state: defineState(family, () => null, {}),
    stream: ({ id }) => id,
    decide: ({ columns }) => ({ type: 'Set', payload: JSON.parse(columns) }),
  });

export const commands = [
  openAccount,
  credit,
  debit,
  closeAccount,
  placeOrder,
  setter('setThing', families.thing),
  setter('setOwner', families.owner),
  setter('setPlace', families.place),
];
