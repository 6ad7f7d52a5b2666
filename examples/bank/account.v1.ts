import { decimal, defineProjection, many, type RowOf, t } from '../../src/index.ts';
import { changeOf, everyBooking } from './bookings.ts';
import { type BookingEvent, bankAccount } from './events.ts';

export const accountColumns = {
  accountId: t.text().primaryKey(),
  openedOn: t.date().nullable(),
  balance: t.decimal(18, 2).index(),
  bookings: t.integer().describe('Without corrections.'),
  corrections: t.integer(),
  corrected: t.decimal(18, 2).describe('What corrections changed the balance by, up or down.'),
  firstBookingId: t.text().nullable(),
  lastBookingId: t.text().nullable(),
};

export type AccountRow = Omit<RowOf<typeof accountColumns>, 'accountId'>;

export const emptyAccount: AccountRow = {
  openedOn: null,
  balance: decimal(0),
  bookings: 0,
  corrections: 0,
  corrected: decimal(0),
  firstBookingId: null,
  lastBookingId: null,
};

/** An account as clients see it. `account-balance.v1.ts` is the same in SQL. */
export const accountV1 = defineProjection({
  name: 'account',
  version: 1,
  events: bankAccount,
  table: accountColumns,
  relations: {
    statements: many('statement', { to: 'accountId', description: 'One a month.' }),
    lines: many('booking', { to: 'accountId' }),
  },
  history: true,
  snapshots: { everyEvents: 1000, keep: 2 },
  key: (event) => event.streamId,
  evolve: {
    AccountOpened: (row, { payload }) => ({ ...(row ?? emptyAccount), openedOn: row?.openedOn ?? payload.openedOn }),
    ...everyBooking((row: AccountRow | null, event: BookingEvent): AccountRow => {
      const account = row ?? emptyAccount;
      const change = changeOf(event);
      const balance = account.balance.plus(change);
      if (event.type === 'Corrected')
        return {
          ...account,
          balance,
          corrections: account.corrections + 1,
          corrected: account.corrected.plus(change),
        };
      return {
        ...account,
        balance,
        bookings: account.bookings + 1,
        firstBookingId: account.firstBookingId ?? event.payload.bookingId,
        lastBookingId: event.payload.bookingId,
      };
    }),
  },
});
