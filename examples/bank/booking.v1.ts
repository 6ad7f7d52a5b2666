import { defineProjection, t } from '../../src/index.ts';
import { changeOf, everyBooking } from './bookings.ts';
import { type BookingEvent, bankAccount, bookingTypes } from './events.ts';
import { statementIdOf } from './statement.v1.ts';

/** One row for each booking: the lines of the statements. */
export const bookingV1 = defineProjection({
  name: 'booking',
  version: 1,
  events: bankAccount,
  table: {
    bookingId: t.text().primaryKey(),
    accountId: t.text().index(),
    statementId: t.text().index(),
    number: t.integer().index().describe('Its place among all events of the account.'),
    bookedOn: t.date().index(),
    operation: t.enum(bookingTypes).index(),
    amount: t.decimal(18, 2).describe('What it changed the balance by; a debit is below zero.'),
    balance: t.decimal(18, 2).describe('The balance of the account after the booking.'),
    counterparty: t.text().nullable().describe('The other account of a transfer.'),
    corrects: t.text().nullable().describe('The booking that a correction is about.'),
  },
  key: ({ payload }) => ('bookingId' in payload ? payload.bookingId : null),
  evolve: everyBooking((_: unknown, event: BookingEvent) => {
    const { streamId, streamPosition, payload } = event;
    return {
      accountId: streamId,
      statementId: statementIdOf(streamId, payload.bookedOn),
      number: streamPosition,
      bookedOn: payload.bookedOn,
      operation: event.type,
      amount: changeOf(event),
      balance: payload.balance,
      counterparty: 'counterparty' in payload ? payload.counterparty : null,
      corrects: 'corrects' in payload ? payload.corrects : null,
    };
  }),
});
