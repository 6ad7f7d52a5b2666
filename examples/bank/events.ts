import { z } from 'zod';
import { defineEvents, type PayloadOf } from '../../src/index.ts';

const amount = z.string().regex(/^-?\d{1,12}(\.\d{1,2})?$/);

const booking = z.object({
  bookingId: z.string(),
  /** The day for which the booking counts. It may be recorded much later. */
  bookedOn: z.iso.date(),
  /** Such as `VKLAD` (cash in); the bank's own bookings have none. */
  operation: z.string().nullable(),
  /** An exact decimal, never negative. */
  amount,
});

/** One stream per account; its id is the account's number. */
export const bankAccount = defineEvents('bank_account', {
  Credited: booking,
  Debited: booking,
  /**
   * An earlier booking had another amount. The event holds the old and the new amount, credits above and debits below zero, so no reader has to
   * look up the earlier booking to reverse its amount.
   */
  Corrected: z.object({
    bookingId: z.string(),
    bookedOn: z.iso.date(),
    operation: z.string().nullable(),
    was: amount,
    is: amount,
  }),
});

export type Booking = PayloadOf<typeof bankAccount, 'Credited'>;
