import { z } from 'zod';
import { defineEvents, type PayloadOf, type RecordedEventOf } from '../../src/index.ts';

/** An exact decimal, not below zero. JSON numbers are floats, which can't hold all cents exactly. */
const amount = z.string().regex(/^\d{1,15}(\.\d{1,2})?$/);

/** An exact decimal; credits are above zero, debits below. */
const signedAmount = z.string().regex(/^-?\d{1,15}(\.\d{1,2})?$/);

const booking = z.object({
  bookingId: z.string(),
  /** The day of the booking. An imported booking may be recorded much later. */
  bookedOn: z.iso.date(),
  amount,
  /** The balance of the account after the booking. */
  balance: signedAmount,
});

/** The counterparty is an account of this bank, or `bank/account` of another bank. */
const transfer = booking.extend({ counterparty: z.string() });

/** For a month, such as `2026-01`. */
const interest = booking.extend({ month: z.string().regex(/^\d{4}-\d{2}$/) });

/** One stream per account; its id is the number of the account. */
export const bankAccount = defineEvents('bank_account', {
  AccountOpened: z.object({ openedOn: z.iso.date() }),
  Deposited: booking,
  Withdrawn: booking,
  TransferSent: transfer,
  TransferReceived: transfer,
  InterestPaid: interest,
  /** The balance was below zero. */
  InterestCharged: interest,
  FeeCharged: booking,
  /**
   * An earlier booking should have had another amount. The event holds the old and the new amount, so no reader has to look up the earlier
   * booking to reverse its amount.
   */
  Corrected: z.object({
    bookingId: z.string(),
    bookedOn: z.iso.date(),
    /** The earlier booking: its id, its day and its type. */
    corrects: z.string(),
    correctsDay: z.iso.date(),
    operation: z.string(),
    was: signedAmount,
    is: signedAmount,
    balance: signedAmount,
  }),
});

export type Booking = PayloadOf<typeof bankAccount, 'Deposited'>;
export type Correction = PayloadOf<typeof bankAccount, 'Corrected'>;

/** The types of all events that change a balance. */
export const bookingTypes = [
  'Deposited',
  'Withdrawn',
  'TransferSent',
  'TransferReceived',
  'InterestPaid',
  'InterestCharged',
  'FeeCharged',
  'Corrected',
] as const;

export type BookingType = (typeof bookingTypes)[number];
export type BookingEvent = { [T in BookingType]: RecordedEventOf<typeof bankAccount, T> }[BookingType];
