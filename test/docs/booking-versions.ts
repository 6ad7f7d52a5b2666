import { z } from 'zod';
import { defineCommand, defineEvents, defineReactor } from '../../src/index.ts';

/** The workflow of the guide on versions, docs/reactors.md. */
export const booking = defineEvents('booking', {
  BookingRequested: z.object({ guest: z.string(), price: z.int() }),
  RoomHeld: z.object({}),
  BookingConfirmed: z.object({}),
});
export const payment = defineEvents('payment', { Charged: z.object({ amount: z.int() }) });

export const charge = defineCommand({
  name: 'charge',
  input: z.object({ guest: z.string(), amount: z.int() }),
  events: payment,
  stream: ({ guest }) => guest,
  decide: ({ amount }) => ({ type: 'Charged', payload: { amount } }),
});
const onBooking = z.object({ bookingId: z.string() });
export const holdRoom = defineCommand({
  name: 'holdRoom',
  input: onBooking,
  events: booking,
  stream: ({ bookingId }) => bookingId,
  decide: () => ({ type: 'RoomHeld', payload: {} }),
});
export const confirmBooking = defineCommand({
  name: 'confirmBooking',
  input: onBooking,
  events: booking,
  stream: ({ bookingId }) => bookingId,
  decide: () => ({ type: 'BookingConfirmed', payload: {} }),
});

export const bookingFlowV1 = defineReactor({
  name: 'booking_flow',
  events: booking,
  handle: {
    BookingRequested: async ({ streamId, payload: { guest, price } }, { execute }) => {
      await execute(charge, { guest, amount: price });
      await execute(confirmBooking, { bookingId: streamId });
    },
  },
});

export const bookingFlowV2 = defineReactor({
  name: 'booking_flow',
  version: 2,
  events: booking,
  handle: {
    BookingRequested: async ({ streamId, payload: { guest, price } }, { execute }) => {
      await execute(holdRoom, { bookingId: streamId });
      await execute(charge, { guest, amount: price / 10 });
      await execute(confirmBooking, { bookingId: streamId });
    },
  },
});
