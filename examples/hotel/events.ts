import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

/** An exact decimal with two digits. */
const money = z.string().regex(/^\d{1,6}\.\d{2}$/);

/** The first release wrote the price as a float. */
interface RoomReservedV1 {
  readonly guestId: string;
  readonly arrival: string;
  readonly departure: string;
  readonly payWithinMs: number;
  readonly total: number;
}

/** One stream per reservation. */
export const reservation = defineEvents(
  'reservation',
  {
    RoomReserved: z.object({
      guestId: z.string(),
      arrival: z.iso.datetime(),
      departure: z.iso.datetime(),
      payWithinMs: z.int(),
      price: money,
    }),
    PaymentReminderSent: z.object({}),
    ReservationConfirmed: z.object({}),
    ReservationExpired: z.object({}),
    ReservationCancelled: z.object({}),
    GuestCheckedIn: z.object({}),
    GuestCheckedOut: z.object({}),
  },
  { upcasters: { RoomReserved: [({ total, ...room }: RoomReservedV1) => ({ ...room, price: total.toFixed(2) })] } },
);

/** One stream per reservation, with its id. The first two releases called a payment `Paid`. */
export const payment = defineEvents(
  'payment',
  { PaymentReceived: z.object({ amount: money }), PaymentRefunded: z.object({ amount: money }) },
  { types: { PaymentReceived: { was: ['Paid'] } } },
);

/** One stream per guest. */
export const loyalty = defineEvents('loyalty', {
  PointsEarned: z.object({ reservationId: z.string(), points: z.int() }),
});
