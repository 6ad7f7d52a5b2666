import { defineProjection, t } from '../../src/index.ts';
import { loyalty, payment, reservation } from './events.ts';

export const reservationV1 = defineProjection({
  name: 'reservation',
  version: 1,
  events: [reservation, payment],
  table: {
    reservationId: t.text().primaryKey(),
    guestId: t.text().index(),
    arrival: t.timestamptz().index(),
    departure: t.timestamptz(),
    price: t.decimal(8, 2),
    paid: t.decimal(8, 2),
    status: t.enum(['Reserved', 'Confirmed', 'Expired', 'Cancelled', 'CheckedIn', 'CheckedOut']).index(),
  },
  key: (event) => event.streamId,
  evolve: {
    RoomReserved: (_, { payload: { payWithinMs, ...room } }) => ({ ...room, paid: '0', status: 'Reserved' }),
    PaymentReceived: (row, { payload }) => row && { ...row, paid: row.paid.plus(payload.amount) },
    PaymentRefunded: (row, { payload }) => row && { ...row, paid: row.paid.minus(payload.amount) },
    ReservationConfirmed: (row) => row && { ...row, status: 'Confirmed' },
    ReservationExpired: (row) => row && { ...row, status: 'Expired' },
    ReservationCancelled: (row) => row && { ...row, status: 'Cancelled' },
    GuestCheckedIn: (row) => row && { ...row, status: 'CheckedIn' },
    GuestCheckedOut: (row) => row && { ...row, status: 'CheckedOut' },
  },
});

export const guestLoyaltyV1 = defineProjection({
  name: 'guest_loyalty',
  version: 1,
  events: loyalty,
  table: { guestId: t.text().primaryKey(), points: t.integer(), stays: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    PointsEarned: (row, { payload }) => ({
      points: (row?.points ?? 0) + payload.points,
      stays: (row?.stays ?? 0) + 1,
    }),
  },
});
