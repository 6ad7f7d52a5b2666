import { defineReactor } from '../../src/index.ts';
import { accepted } from './accepted.ts';
import { payment, reservation } from './events.ts';
import { earnPoints } from './loyalty.ts';
import { refundPayment } from './payment.ts';
import { checkIn, checkOut, confirmReservation, expireReservation, remindOfPayment } from './reservation.ts';

/** From the third release on, points are earned at the end of the stay. */
export const stayV3 = defineReactor({
  name: 'stay',
  version: 3,
  events: [reservation, payment],
  waitsFor: { PaymentReceived: ({ streamId }) => streamId },
  commands: [remindOfPayment, confirmReservation, expireReservation, refundPayment, checkIn, checkOut, earnPoints],
  from: 'beginning',
  concurrency: 20,
  onError: 'dead-letter',
  handle: {
    async RoomReserved({ streamId: reservationId, payload }, { execute, wait }) {
      const { guestId, arrival, departure, price, payWithinMs } = payload;
      const half = { key: reservationId, timeout: Math.ceil(payWithinMs / 2) };
      let paid = await wait.for('PaymentReceived', { ...half, step: 'pay at once' });
      if (!paid) {
        await execute(remindOfPayment, { reservationId });
        paid = await wait.for('PaymentReceived', { ...half, step: 'pay after the reminder' });
      }
      if (!paid || !(await accepted(execute(confirmReservation, { reservationId })))) {
        await execute(expireReservation, { reservationId });
        await execute(refundPayment, { reservationId });
        return;
      }
      await wait.until(arrival, { step: 'arrival' });
      await execute(checkIn, { reservationId });
      await wait.until(departure, { step: 'departure' });
      await execute(checkOut, { reservationId });
      await execute(earnPoints, { guestId, reservationId, points: 2 * Math.floor(Number(price) / 10) });
    },
  },
});
