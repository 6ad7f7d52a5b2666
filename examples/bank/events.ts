import { z } from 'zod';
import { defineEvents, type PayloadOf } from '../../src/index.ts';

const amount = z.string().regex(/^-?\d{1,12}(\.\d{1,2})?$/);

const booking = z.object({
  bookingId: z.string(),
  /** The day that the booking counts for. It can be recorded much later. */
  bookedOn: z.iso.date(),
  /** Such as `VKLAD` (cash in); what the bank itself does has none. */
  operation: z.string().nullable(),
  /** An exact decimal, never negative. */
  amount,
});

/** The stream is the account, its id the account's number. */
export const bankAccount = defineEvents('bank_account', {
  Credited: booking,
  Debited: booking,
  /**
   * An earlier booking was of another amount. Tells what it was and what it is, credits above and debits below zero, so that nobody has to look
   * the earlier one up to take its amount back.
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
