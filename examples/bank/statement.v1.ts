import { type Decimal, decimal, defineProjection, many, one, t } from '../../src/index.ts';
import { changeOf, everyBooking } from './bookings.ts';
import { type BookingEvent, bankAccount } from './events.ts';

const table = {
  statementId: t.text().primaryKey().describe('Account and month, such as `alice/2026-01`.'),
  accountId: t.text().index(),
  month: t.text().index().describe('Such as `2026-01`.'),
  opening: t.decimal(18, 2).describe('The balance before the first booking of the month.'),
  credited: t.decimal(18, 2),
  debited: t.decimal(18, 2),
  interest: t.decimal(18, 2).describe('Interest paid less interest charged. It is part of `credited` and `debited`.'),
  corrected: t.decimal(18, 2).describe('What corrections changed the balance by, up or down.'),
  closing: t.decimal(18, 2).describe('The balance after the last booking: opening + credited - debited + corrected.'),
  bookings: t.integer().describe('With corrections.'),
};

interface Month {
  readonly opening: Decimal;
  readonly credited: Decimal;
  readonly debited: Decimal;
  readonly interest: Decimal;
  readonly corrected: Decimal;
  readonly bookings: number;
}

/**
 * The statement of an account for a month. A correction is on the statement of the month in which it is booked: a statement that a customer
 * has received never changes. (`turnover_by_day` counts it on the day of the corrected booking.)
 */
export const statementV1 = defineProjection({
  name: 'statement',
  version: 1,
  events: bankAccount,
  table,
  relations: {
    account: one('account', { from: 'accountId' }),
    lines: many('booking', { to: 'statementId' }),
  },
  key: ({ streamId, payload }) => ('bookedOn' in payload ? statementIdOf(streamId, payload.bookedOn) : null),
  evolve: everyBooking((row: Month | null, event: BookingEvent) => {
    const { streamId, type, payload } = event;
    const change = changeOf(event);
    const month = row ?? newMonth(decimal(payload.balance).minus(change));
    const correction = type === 'Corrected';
    const ofInterest = type === 'InterestPaid' || type === 'InterestCharged';
    return {
      accountId: streamId,
      month: payload.bookedOn.slice(0, 7),
      opening: month.opening,
      credited: !correction && change.gt(0) ? month.credited.plus(change) : month.credited,
      debited: !correction && change.lt(0) ? month.debited.minus(change) : month.debited,
      interest: ofInterest ? month.interest.plus(change) : month.interest,
      corrected: correction ? month.corrected.plus(change) : month.corrected,
      closing: payload.balance,
      bookings: month.bookings + 1,
    };
  }),
});

function newMonth(opening: Decimal): Month {
  const zero = decimal(0);
  return { opening, credited: zero, debited: zero, interest: zero, corrected: zero, bookings: 0 };
}

export function statementIdOf(accountId: string, day: string): string {
  return `${accountId}/${day.slice(0, 7)}`;
}
