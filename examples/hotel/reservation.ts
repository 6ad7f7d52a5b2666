import { z } from 'zod';
import { CommandRejected, decimal, defineCommand, defineState } from '../../src/index.ts';
import { reservation } from './events.ts';

type Reservation =
  | { readonly status: 'None' }
  | {
      readonly status: 'Reserved' | 'Confirmed' | 'Expired' | 'Cancelled' | 'CheckedIn' | 'CheckedOut';
      readonly price: string;
    };

export const reservationState = defineState(reservation, (): Reservation => ({ status: 'None' }), {
  RoomReserved: (_, { payload }) => ({ status: 'Reserved', price: payload.price }),
  ReservationConfirmed: (state) => withStatus(state, 'Confirmed'),
  ReservationExpired: (state) => withStatus(state, 'Expired'),
  ReservationCancelled: (state) => withStatus(state, 'Cancelled'),
  GuestCheckedIn: (state) => withStatus(state, 'CheckedIn'),
  GuestCheckedOut: (state) => withStatus(state, 'CheckedOut'),
});

export const reservationId = z.string().min(1).max(100);

const pricePerNight = { single: '80.00', double: '120.00' };
const thirtyMinutes = 30 * 60_000;

export const reserveRoom = defineCommand({
  name: 'reserveRoom',
  description: 'Reserves a room. It expires if it is not paid within 30 minutes.',
  input: z.object({
    reservationId,
    guestId: z.string().min(1).max(100),
    room: z.enum(['single', 'double']).meta({ id: 'RoomKind' }),
    arrival: z.iso.datetime(),
    departure: z.iso.datetime(),
  }),
  state: reservationState,
  emits: ['RoomReserved'],
  stream: (input) => input.reservationId,
  decide({ reservationId, guestId, room, arrival, departure }, { status }) {
    if (status !== 'None') throw new CommandRejected(`Reservation '${reservationId}' exists already.`);
    const nights = Math.ceil((Date.parse(departure) - Date.parse(arrival)) / 86_400_000);
    if (nights < 1 || nights > 30) throw new CommandRejected('A stay is 1 to 30 nights.');
    const price = decimal(pricePerNight[room]).times(nights).toFixed(2);
    return { type: 'RoomReserved', payload: { guestId, arrival, departure, payWithinMs: thirtyMinutes, price } };
  },
});

export const cancelReservation = defineCommand({
  name: 'cancelReservation',
  description: 'Cancels a reservation that is not confirmed yet. A payment is refunded.',
  input: z.object({ reservationId }),
  state: reservationState,
  emits: ['ReservationCancelled'],
  stream: (input) => input.reservationId,
  decide({ reservationId }, { status }) {
    expectStatus(reservationId, status, 'Reserved');
    return { type: 'ReservationCancelled', payload: {} };
  },
});

const step = z.object({ reservationId });

/** A step of a stay. */
export const remindOfPayment = defineCommand({
  name: 'remindOfPayment',
  input: step,
  state: reservationState,
  emits: ['PaymentReminderSent'],
  stream: (input) => input.reservationId,
  decide: (_, { status }) => (status === 'Reserved' ? { type: 'PaymentReminderSent', payload: {} } : []),
});

/** A step of a stay. It does nothing if the guest has cancelled. */
export const expireReservation = defineCommand({
  name: 'expireReservation',
  input: step,
  state: reservationState,
  emits: ['ReservationExpired'],
  stream: (input) => input.reservationId,
  decide: (_, { status }) => (status === 'Reserved' ? { type: 'ReservationExpired', payload: {} } : []),
});

/** A step of a stay. */
export const confirmReservation = defineCommand({
  name: 'confirmReservation',
  input: step,
  state: reservationState,
  emits: ['ReservationConfirmed'],
  stream: (input) => input.reservationId,
  decide({ reservationId }, { status }) {
    expectStatus(reservationId, status, 'Reserved');
    return { type: 'ReservationConfirmed', payload: {} };
  },
});

/** A step of a stay. */
export const checkIn = defineCommand({
  name: 'checkIn',
  input: step,
  state: reservationState,
  emits: ['GuestCheckedIn'],
  stream: (input) => input.reservationId,
  decide({ reservationId }, { status }) {
    expectStatus(reservationId, status, 'Confirmed');
    return { type: 'GuestCheckedIn', payload: {} };
  },
});

/** A step of a stay. */
export const checkOut = defineCommand({
  name: 'checkOut',
  input: step,
  state: reservationState,
  emits: ['GuestCheckedOut'],
  stream: (input) => input.reservationId,
  decide({ reservationId }, { status }) {
    expectStatus(reservationId, status, 'CheckedIn');
    return { type: 'GuestCheckedOut', payload: {} };
  },
});

function withStatus(state: Reservation, status: Exclude<Reservation['status'], 'None'>): Reservation {
  return state.status === 'None' ? state : { ...state, status };
}

function expectStatus(reservationId: string, found: Reservation['status'], expected: Reservation['status']): void {
  if (found === expected) return;
  throw new CommandRejected(
    found === 'None'
      ? `There is no reservation '${reservationId}'.`
      : `Reservation '${reservationId}' is ${found}, expected ${expected}.`,
    { status: found },
  );
}
