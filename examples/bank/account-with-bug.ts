import { defineProjection, many } from '../../src/index.ts';
import { type AccountRow, accountColumns, emptyAccount } from './account.v1.ts';
import { changeOf, everyBooking } from './bookings.ts';
import { type BookingEvent, bankAccount } from './events.ts';

// The bug that was deployed one day: after a refactoring, corrections did not change the balance.
export const accountWithBug = defineProjection({
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
        return { ...account, corrections: account.corrections + 1, corrected: account.corrected.plus(change) };
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
