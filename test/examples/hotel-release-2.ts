import { accepted } from '../../examples/hotel/accepted.ts';
import { reservation } from '../../examples/hotel/events.ts';
import { earnPoints } from '../../examples/hotel/loyalty.ts';
import { guestLoyaltyV1 } from '../../examples/hotel/read-models.ts';
import { checkIn, confirmReservation, expireReservation, remindOfPayment } from '../../examples/hotel/reservation.ts';
import { defineConfig, defineReactor } from '../../src/index.ts';
import { payment, refundPayment } from './hotel-payment-before.ts';

// A release is a frozen copy: what was deployed does not change with the example.
const stay = {
  name: 'stay',
  events: [reservation, payment],
  waitsFor: { Paid: ({ streamId }: { readonly streamId: string }) => streamId },
  from: 'beginning',
  concurrency: 20,
  onError: 'dead-letter',
} as const;

const stayV1 = defineReactor({
  ...stay,
  handle: {
    async RoomReserved({ streamId: reservationId, payload }, { execute, wait }) {
      const { guestId, arrival, price, payWithinMs } = payload;
      const paid = await wait.for('Paid', { key: reservationId, timeout: payWithinMs });
      if (!paid || !(await accepted(execute(confirmReservation, { reservationId })))) {
        await execute(expireReservation, { reservationId });
        await execute(refundPayment, { reservationId });
        return;
      }
      await wait.until(arrival);
      await execute(checkIn, { reservationId });
      await execute(earnPoints, { guestId, reservationId, points: Math.floor(Number(price) / 10) });
    },
  },
});

const stayV2 = defineReactor({
  ...stay,
  version: 2,
  handle: {
    async RoomReserved({ streamId: reservationId, payload }, { execute, wait }) {
      const { guestId, arrival, price, payWithinMs } = payload;
      const half = { key: reservationId, timeout: Math.ceil(payWithinMs / 2) };
      let paid = await wait.for('Paid', { ...half, step: 'pay at once' });
      if (!paid) {
        await execute(remindOfPayment, { reservationId });
        paid = await wait.for('Paid', { ...half, step: 'pay after the reminder' });
      }
      if (!paid || !(await accepted(execute(confirmReservation, { reservationId })))) {
        await execute(expireReservation, { reservationId });
        await execute(refundPayment, { reservationId });
        return;
      }
      await wait.until(arrival);
      await execute(checkIn, { reservationId });
      await execute(earnPoints, { guestId, reservationId, points: 2 * Math.floor(Number(price) / 10) });
    },
  },
});

/** The worker of the hotel after its first change: payloads with exact prices, and version 2 of the workflow. */
export default defineConfig({ projections: [guestLoyaltyV1], reactors: [stayV1, stayV2] });
