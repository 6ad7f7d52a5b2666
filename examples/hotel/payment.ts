import { z } from 'zod';
import { CommandRejected, defineCommand, defineState } from '../../src/index.ts';
import { payment } from './events.ts';
import { reservationId, reservationState } from './reservation.ts';

type Payment =
  | { readonly status: 'None' }
  | { readonly status: 'Received'; readonly amount: string }
  | { readonly status: 'Refunded' };

const paymentState = defineState(payment, (): Payment => ({ status: 'None' }), {
  PaymentReceived: (_, { payload }) => ({ status: 'Received', amount: payload.amount }),
  PaymentRefunded: () => ({ status: 'Refunded' }),
});

/** It reads the reservation in the same transaction, so nobody pays for what is cancelled. */
export const payReservation = defineCommand({
  name: 'payReservation',
  description: 'Pays for a reservation that is not cancelled.',
  input: z.object({ reservationId }),
  states: [reservationState, paymentState],
  streams: ({ reservationId: streamId }) => [
    { state: reservationState, streamId },
    { state: paymentState, streamId },
  ],
  emits: ['PaymentReceived'],
  decide({ reservationId }, [reservation, { status }]) {
    if (status !== 'None') throw new CommandRejected(`Reservation '${reservationId}' is paid already.`);
    if (reservation.status !== 'Reserved')
      throw new CommandRejected(`Reservation '${reservationId}' can't be paid: it is ${reservation.status}.`);
    return [[], { type: 'PaymentReceived', payload: { amount: reservation.price } }];
  },
});

/** A step of a stay. It does nothing if nothing was paid. */
export const refundPayment = defineCommand({
  name: 'refundPayment',
  input: z.object({ reservationId }),
  state: paymentState,
  emits: ['PaymentRefunded'],
  stream: (input) => input.reservationId,
  decide: (_, state) =>
    state.status === 'Received' ? { type: 'PaymentRefunded', payload: { amount: state.amount } } : [],
});
