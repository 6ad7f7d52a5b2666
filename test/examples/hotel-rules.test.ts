import { test } from 'vitest';
import { loyalty, payment, reservation } from '../../examples/hotel/events.ts';
import { earnPoints } from '../../examples/hotel/loyalty.ts';
import { payReservation, refundPayment } from '../../examples/hotel/payment.ts';
import { guestLoyaltyV1, reservationV1 } from '../../examples/hotel/read-models.ts';
import {
  cancelReservation,
  checkIn,
  checkOut,
  confirmReservation,
  expireReservation,
  remindOfPayment,
  reserveRoom,
} from '../../examples/hotel/reservation.ts';
import { stayV1 } from '../../examples/hotel/stay.v1.ts';
import { stayV2 } from '../../examples/hotel/stay.v2.ts';
import { stayV3 } from '../../examples/hotel/stay.v3.ts';
import { CommandRejected, type Reactor } from '../../src/index.ts';
import { givenEvents, givenReactor, givenStream } from '../../src/testing.ts';

const minutes = 60_000;
const days = 24 * 60 * minutes;
const [arrival, departure] = ['2026-01-11T15:00:00.000Z', '2026-01-13T11:00:00.000Z'];
const roomReserved = {
  type: 'RoomReserved',
  payload: { guestId: 'ada', arrival, departure, payWithinMs: 30 * minutes, price: '240.00' },
} as const;
const paymentReceived = { type: 'PaymentReceived', payload: { amount: '240.00' } } as const;
const reserved = { family: reservation, streamId: 'r1', events: [roomReserved] };
const paid = { family: payment, streamId: 'r1', events: [paymentReceived] };
const step = { reservationId: 'r1' };
const [expired, refunded] = [
  { command: expireReservation, input: step },
  { command: refundPayment, input: step },
];
const [confirmed, reminded, checkedIn, checkedOut] = [
  { command: confirmReservation, input: step },
  { command: remindOfPayment, input: step },
  { command: checkIn, input: step },
  { command: checkOut, input: step },
];
const earned = (points: number) => ({ command: earnPoints, input: { guestId: 'ada', reservationId: 'r1', points } });
const begun = (stay: Reactor) => givenReactor(stay).when(reserved);

test('version 1 waits for the payment, then for the arrival', async () => {
  const stay = begun(stayV1);
  await stay.thenWaits({ for: 'PaymentReceived', key: 'r1', timeout: 30 * minutes });
  await stay.whenTimePasses(30 * minutes).thenSteps(expired, refunded);
  const confirmedStay = stay.whenTimePasses(29 * minutes).whenEvents(paid);
  await confirmedStay.thenSteps(confirmed);
  await confirmedStay.thenWaits({ until: arrival });
  const ended = confirmedStay.whenTimePasses(11 * days);
  await ended.thenSteps(confirmed, checkedIn, earned(24));
  await ended.thenReplayable();
});

test('a stay that was cancelled while it was paid is refunded', async () => {
  const stay = givenReactor(stayV1).where(confirmReservation, new CommandRejected('It is cancelled.')).when(reserved);
  await stay.whenEvents(paid).thenSteps(confirmed, expired, refunded);
});

test('version 2 reminds at half of the time, and grants more points', async () => {
  const waiting = begun(stayV2).whenTimePasses(15 * minutes);
  await waiting.thenSteps(reminded);
  await waiting.thenWaits({ for: 'PaymentReceived', key: 'r1', timeout: 15 * minutes });
  await waiting.whenTimePasses(15 * minutes).thenSteps(reminded, expired, refunded);
  await waiting
    .whenEvents(paid)
    .whenTimePasses(11 * days)
    .thenSteps(reminded, confirmed, checkedIn, earned(48));
  await begun(stayV2)
    .whenEvents(paid)
    .whenTimePasses(11 * days)
    .thenSteps(confirmed, checkedIn, earned(48));
});

test('version 3 grants the points at the end of the stay', async () => {
  const stay = begun(stayV3)
    .whenEvents(paid)
    .whenTimePasses(11 * days);
  await stay.thenSteps(confirmed, checkedIn);
  await stay.thenWaits({ until: departure });
  await stay.whenTimePasses(2 * days).thenSteps(confirmed, checkedIn, checkedOut, earned(48));
});

test('a room costs its price for each night', async () => {
  const input = { reservationId: 'r1', guestId: 'ada', room: 'double', arrival, departure } as const;
  await givenStream(reservation).when(reserveRoom, input).thenEvents(roomReserved);
  await givenStream(reservation)
    .when(reserveRoom, { ...input, departure: arrival })
    .thenRejected('A stay is 1 to 30 nights.');
  await givenStream(reservation, roomReserved)
    .when(reserveRoom, input)
    .thenRejected("Reservation 'r1' exists already.");
});

test('nobody pays for what is cancelled, or twice', async () => {
  const cancelled = { type: 'ReservationCancelled', payload: {} } as const;
  await givenEvents(reserved).when(payReservation, step).thenStreams([], [paymentReceived]);
  await givenEvents(reserved, paid).when(payReservation, step).thenRejected("Reservation 'r1' is paid already.");
  await givenEvents({ ...reserved, events: [roomReserved, cancelled] })
    .when(payReservation, step)
    .thenRejected("Reservation 'r1' can't be paid: it is Cancelled.");
  await givenStream(reservation, roomReserved, cancelled)
    .when(cancelReservation, step)
    .thenRejected("Reservation 'r1' is Cancelled, expected Reserved.");
  await givenStream(reservation, roomReserved, cancelled).when(expireReservation, step).thenNothing();
});

test('reservations of the first release are read with exact prices', async () => {
  const { price: _, ...old } = roomReserved.payload;
  const given = givenEvents(
    {
      family: reservation,
      streamId: 'r1',
      events: [{ type: 'RoomReserved', payload: { ...old, total: 240 }, payloadVersion: 1 }],
    },
    paid,
    {
      family: loyalty,
      streamId: 'ada',
      events: [{ type: 'PointsEarned', payload: { reservationId: 'r1', points: 24 } }],
    },
  );
  const reservations = given.projectedBy(reservationV1);
  await reservations.thenRows({
    reservationId: 'r1',
    guestId: 'ada',
    arrival,
    departure,
    price: '240.00',
    paid: '240.00',
    status: 'Reserved',
  });
  await reservations.thenReplayable();
  await given.projectedBy(guestLoyaltyV1).thenRows({ guestId: 'ada', points: 24, stays: 1 });
});
