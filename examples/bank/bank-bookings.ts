import { z } from 'zod';
import { decimal, defineCommand, defineState } from '../../src/index.ts';
import { type Account, accountId, accountState, amount, booked, expectOpen, rejected } from './account.ts';
import { changeOf, everyBooking } from './bookings.ts';
import { type BookingEvent, type BookingType, bankAccount } from './events.ts';

// What the bank books itself. It may lead to a balance below zero.

/** A year has twelve equal months. */
const percentOfAMonth = 1200;

export const addInterest = defineCommand({
  name: 'addInterest',
  description: 'Books the interest of a month on the current balance, once. A balance below zero is charged.',
  input: z.object({
    accountId,
    month: z
      .string()
      .regex(/^\d{4}-(0[1-9]|1[0-2])$/, "expected a month such as '2026-01'")
      .meta({ description: 'Such as `2026-01`.' }),
    rate: z
      .string()
      .regex(/^\d{1,2}(\.\d{1,4})?$/, "expected a rate such as '2.5'")
      .meta({ description: 'In percent a year, such as `2.5`.' }),
  }),
  state: accountState,
  emits: ['InterestPaid', 'InterestCharged'],
  stream: (input) => input.accountId,
  decide({ accountId, month, rate }, account, { now, streamVersion }) {
    const holder = expectOpen(accountId, account);
    const { balance, interestUpTo } = holder;
    if (interestUpTo !== null && interestUpTo >= month)
      throw rejected(`The interest of account '${accountId}' is booked up to ${interestUpTo}.`, {
        rejection: 'INTEREST_IS_BOOKED',
        accountId,
        upTo: interestUpTo,
      });
    const interest = decimal(balance).times(rate).div(percentOfAMonth).round(2);
    const payload = { ...booked(accountId, holder, interest, { now, streamVersion }), month };
    return { type: interest.lt(0) ? 'InterestCharged' : 'InterestPaid', payload };
  },
});

export const chargeFee = defineCommand({
  name: 'chargeFee',
  description: 'Books a fee of the bank.',
  input: z.object({ accountId, amount }),
  state: accountState,
  emits: ['FeeCharged'],
  stream: (input) => input.accountId,
  decide({ accountId, amount }, account, { now, streamVersion }) {
    const holder = expectOpen(accountId, account);
    return {
      type: 'FeeCharged',
      payload: booked(accountId, holder, decimal(amount).times(-1), { now, streamVersion }),
    };
  },
});

interface Booked {
  readonly operation: BookingType;
  readonly bookedOn: string;
  /** With its corrections; a debit is below zero. */
  readonly amount: string;
}

interface Bookings {
  readonly account: Account;
  readonly bookings: ReadonlyMap<string, Booked>;
}

/** An account with all its bookings. Only corrections need them. */
const bookingsState = defineState(
  bankAccount,
  (): Bookings => ({ account: accountState.initial(), bookings: new Map() }),
  {
    AccountOpened: ({ account, bookings }, event) => ({ account: accountState.apply(account, event), bookings }),
    ...everyBooking(withBooking),
  },
);

function withBooking({ account, bookings }: Bookings, event: BookingEvent): Bookings {
  const { payload } = event;
  const [id, booking] =
    'corrects' in payload
      ? ([payload.corrects, { ...bookings.get(payload.corrects), amount: payload.is }] as const)
      : ([payload.bookingId, { amount: changeOf(event).toFixed(2) }] as const);
  return {
    account: accountState.apply(account, event),
    bookings: new Map(bookings).set(id, { operation: event.type, bookedOn: payload.bookedOn, ...booking }),
  };
}

export const correctBooking = defineCommand({
  name: 'correctBooking',
  description: 'Books the difference to the amount that a booking should have had.',
  input: z.object({
    accountId,
    bookingId: z.string().min(1).max(200),
    amount: z
      .string()
      .regex(/^-?\d{1,9}(\.\d{1,2})?$/, "expected an amount such as '-12.50'")
      .meta({ format: 'decimal', description: 'What it should have been; a debit is below zero.' }),
  }),
  state: bookingsState,
  emits: ['Corrected'],
  stream: (input) => input.accountId,
  decide({ accountId, bookingId, amount }, { account, bookings }, { now, streamVersion }) {
    const holder = expectOpen(accountId, account);
    const booking = bookings.get(bookingId);
    if (!booking)
      throw rejected(`Account '${accountId}' has no booking '${bookingId}'.`, {
        rejection: 'NO_SUCH_BOOKING',
        accountId,
        bookingId,
      });
    if (booking.operation === 'TransferSent' || booking.operation === 'TransferReceived')
      throw rejected(`Booking '${bookingId}' is one side of a transfer. Transfer the difference instead.`, {
        rejection: 'TRANSFER_HAS_TWO_SIDES',
        accountId,
        bookingId,
      });
    const difference = decimal(amount).minus(booking.amount);
    if (difference.eq(0)) return [];
    const { amount: _, ...correction } = booked(accountId, holder, difference, { now, streamVersion });
    return {
      type: 'Corrected',
      payload: {
        ...correction,
        corrects: bookingId,
        correctsDay: booking.bookedOn,
        operation: booking.operation,
        was: booking.amount,
        is: decimal(amount).toFixed(2),
      },
    };
  },
});
