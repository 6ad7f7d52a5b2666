import { defineReactor } from '../../src/index.ts';
import { accepted } from './accepted.ts';
import { payment, reservation } from './events.ts';
import { earnPoints } from './loyalty.ts';
import { refundPayment } from './payment.ts';
import { checkIn, confirmReservation, expireReservation } from './reservation.ts';

/**
 * A stay, from the reservation to the loyalty points, over three streams. It waits for the payment and for the day of arrival, days or months,
 * through restarts and deployments. Each step runs once.
 */
export const stayV1 = defineReactor({
  name: 'stay',
  version: 1,
  events: [reservation, payment],
  waitsFor: { PaymentReceived: ({ streamId }) => streamId },
  commands: [confirmReservation, expireReservation, refundPayment, checkIn, earnPoints],
  from: 'beginning',
  concurrency: 20,
  onError: 'dead-letter',
  handle: {
    async RoomReserved({ streamId: reservationId, payload }, { execute, wait }) {
      const { guestId, arrival, price, payWithinMs } = payload;
      const paid = await wait.for('PaymentReceived', { key: reservationId, timeout: payWithinMs });
      if (!paid || !(await accepted(execute(confirmReservation, { reservationId })))) {
        await execute(expireReservation, { reservationId });
        await execute(refundPayment, { reservationId }); // what came too late, or was paid and cancelled at the same time
        return;
      }
      await wait.until(arrival);
      await execute(checkIn, { reservationId });
      await execute(earnPoints, { guestId, reservationId, points: Math.floor(Number(price) / 10) });
    },
  },
});
