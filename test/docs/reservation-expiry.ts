import { z } from 'zod';
import { defineCommand, defineEvents, defineReactor } from '../../src/index.ts';

export const reservation = defineEvents('reservation', {
  RoomReserved: z.object({ arrival: z.iso.datetime() }),
  RoomReleased: z.object({}),
  GuestReminded: z.object({}),
});
export const payment = defineEvents('payment', {
  PaymentReceived: z.object({ reservationId: z.string() }),
});

const onReservation = { input: z.object({ reservationId: z.string() }), events: reservation };
export const releaseRoom = defineCommand({
  name: 'releaseRoom',
  ...onReservation,
  stream: ({ reservationId }) => reservationId,
  decide: () => ({ type: 'RoomReleased', payload: {} }) as const,
});
export const remindGuest = defineCommand({
  name: 'remindGuest',
  ...onReservation,
  stream: ({ reservationId }) => reservationId,
  decide: () => ({ type: 'GuestReminded', payload: {} }) as const,
});

const day = 24 * 3_600_000;

/** The workflow of docs/reactors.md. */
export const reservationExpiry = defineReactor({
  name: 'reservation_expiry',
  events: [reservation, payment],
  waitsFor: {
    PaymentReceived: ({ payload }) => payload.reservationId,
  },
  handle: {
    RoomReserved: async ({ streamId: reservationId, payload }, { execute, wait }) => {
      const paid = await wait.for('PaymentReceived', { key: reservationId, timeout: 30 * 60_000 });
      if (!paid) return void (await execute(releaseRoom, { reservationId }));
      await wait.until(new Date(Date.parse(payload.arrival) - day));
      await execute(remindGuest, { reservationId });
    },
  },
});
