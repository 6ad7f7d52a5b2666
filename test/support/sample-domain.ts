import { z } from 'zod';
import {
  CommandRejected,
  decimal,
  defineCommand,
  defineEvents,
  defineProjection,
  defineState,
  type Projection,
  t,
} from '../../src/index.ts';

/** A small domain for tests of the runtime: accounts that are opened, credited, debited and closed. */
export const account = defineEvents('account', {
  Opened: z.object({ owner: z.string() }),
  Credited: z.object({ amount: z.string() }),
  Debited: z.object({ amount: z.string() }),
  Closed: z.object({}),
});

export const balanceTable = {
  accountId: t.text().primaryKey(),
  owner: t.text().index(),
  amount: t.decimal(20, 2).index(),
  movements: t.integer(),
};

export const balanceV1 = defineProjection({
  name: 'balance',
  version: 1,
  events: account,
  table: balanceTable,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }),
    Credited: (row, event) =>
      row && { ...row, amount: row.amount.plus(event.payload.amount), movements: row.movements + 1 },
    Debited: (row, event) =>
      row && { ...row, amount: row.amount.minus(event.payload.amount), movements: row.movements + 1 },
    Closed: () => null,
  },
});

export const balanceV2 = defineProjection({
  name: 'balance',
  version: 2,
  events: account,
  table: { ...balanceTable, largest: t.decimal(20, 2) },
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0, largest: '0' }),
    Credited: (row, event) => {
      if (!row) return null;
      const credited = decimal(event.payload.amount);
      return {
        ...row,
        amount: row.amount.plus(credited),
        movements: row.movements + 1,
        largest: credited.gt(row.largest) ? credited : row.largest,
      };
    },
    Debited: (row, event) =>
      row && { ...row, amount: row.amount.minus(event.payload.amount), movements: row.movements + 1 },
    Closed: () => null,
  },
});

/** One row for each owner, changed by all of the owner's openings, and one total row: several keys per event. */
export const openingsV1 = defineProjection({
  name: 'openings',
  version: 1,
  events: account,
  table: { owner: t.text().primaryKey(), opened: t.integer() },
  key: (event) => (event.type === 'Opened' ? [event.payload.owner, '*'] : []),
  evolve: { Opened: (row) => ({ opened: (row?.opened ?? 0) + 1 }) },
});

/** As if it had been declared with that many partitions. */
export function inPartitions<P extends Projection>(projection: P, partitions: number): P {
  return Object.freeze({ ...projection, partitions });
}

/** Small projections `tally_1`, `tally_2` and so on, for tests that need many. */
export function talliesOf(count: number): Projection[] {
  return Array.from({ length: count }, (_, index) =>
    defineProjection({
      name: `tally_${index + 1}`,
      version: 1,
      events: account,
      table: { accountId: t.text().primaryKey(), movements: t.integer() },
      key: (event) => event.streamId,
      evolve: { Credited: (row) => ({ movements: (row?.movements ?? 0) + 1 }) },
    }),
  );
}

type AccountState = { readonly status: 'none' | 'open' | 'closed' };

const accountState = defineState(account, (): AccountState => ({ status: 'none' }), {
  Opened: () => ({ status: 'open' }),
  Closed: () => ({ status: 'closed' }),
});

export const openAccount = defineCommand({
  name: 'openAccount',
  input: z.object({ accountId: z.string().min(1), owner: z.string() }),
  state: accountState,
  stream: (input) => input.accountId,
  decide(input, state) {
    if (state.status !== 'none') throw new CommandRejected('The account exists already.');
    return { type: 'Opened', payload: { owner: input.owner } };
  },
});

export const credit = defineCommand({
  name: 'credit',
  input: z.object({ accountId: z.string().min(1), amount: z.string().regex(/^\d+(\.\d{1,2})?$/) }),
  state: accountState,
  stream: (input) => input.accountId,
  decide(input, state) {
    if (state.status !== 'open') throw new CommandRejected('The account is not open.', { status: state.status });
    return { type: 'Credited', payload: { amount: input.amount } };
  },
});
