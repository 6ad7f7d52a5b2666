import { z } from 'zod';
import { accepted } from '../../examples/hotel/accepted.ts';
import { earnPoints } from '../../examples/hotel/loyalty.ts';
import { guestLoyaltyV1 } from '../../examples/hotel/read-models.ts';
import {
  CommandRejected,
  defineCommand,
  defineConfig,
  defineEvents,
  defineReactor,
  defineState,
} from '../../src/index.ts';
import { payment, refundPayment } from './hotel-payment-before.ts';

/** As the first release declared it: the price is a float. */
export const reservation = defineEvents('reservation', {
  RoomReserved: z.object({
    guestId: z.string(),
    arrival: z.iso.datetime(),
    departure: z.iso.datetime(),
    payWithinMs: z.int(),
    total: z.number(),
  }),
  ReservationConfirmed: z.object({}),
  ReservationExpired: z.object({}),
  ReservationCancelled: z.object({}),
  GuestCheckedIn: z.object({}),
});

interface Reservation {
  readonly status: 'None' | 'Reserved' | 'Confirmed' | 'Expired' | 'Cancelled' | 'CheckedIn';
}

const reservationState = defineState(reservation, (): Reservation => ({ status: 'None' }), {
  RoomReserved: () => ({ status: 'Reserved' }),
  ReservationConfirmed: () => ({ status: 'Confirmed' }),
  ReservationExpired: () => ({ status: 'Expired' }),
  ReservationCancelled: () => ({ status: 'Cancelled' }),
  GuestCheckedIn: () => ({ status: 'CheckedIn' }),
});

const step = {
  input: z.object({ reservationId: z.string() }),
  state: reservationState,
  stream: (input: { readonly reservationId: string }) => input.reservationId,
};

const expireReservation = defineCommand({
  name: 'expireReservation',
  ...step,
  decide: (_, { status }) => (status === 'Reserved' ? { type: 'ReservationExpired', payload: {} } : []),
});

const confirmReservation = defineCommand({
  name: 'confirmReservation',
  ...step,
  decide(_, { status }) {
    if (status !== 'Reserved') throw new CommandRejected(`It is ${status}.`);
    return { type: 'ReservationConfirmed', payload: {} };
  },
});

const checkIn = defineCommand({
  name: 'checkIn',
  ...step,
  decide(_, { status }) {
    if (status !== 'Confirmed') throw new CommandRejected(`It is ${status}.`);
    return { type: 'GuestCheckedIn', payload: {} };
  },
});

// A release is a frozen copy: what was deployed does not change with the example.
const stay = defineReactor({
  name: 'stay',
  events: [reservation, payment],
  waitsFor: { Paid: ({ streamId }) => streamId },
  from: 'beginning',
  concurrency: 20,
  onError: 'dead-letter',
  handle: {
    async RoomReserved({ streamId: reservationId, payload }, { execute, wait }) {
      const { guestId, arrival, total, payWithinMs } = payload;
      const paid = await wait.for('Paid', { key: reservationId, timeout: payWithinMs });
      if (!paid || !(await accepted(execute(confirmReservation, { reservationId })))) {
        await execute(expireReservation, { reservationId });
        await execute(refundPayment, { reservationId });
        return;
      }
      await wait.until(arrival);
      await execute(checkIn, { reservationId });
      await execute(earnPoints, { guestId, reservationId, points: Math.floor(total / 10) });
    },
  },
});

/** The worker of the hotel as it was first deployed. */
export default defineConfig({ projections: [guestLoyaltyV1], reactors: [stay] });
