import { z } from 'zod';
import { defineCommand, defineEvents, defineState } from '../../src/index.ts';

const amount = z.string();

/** As the first two releases declared it: a payment was `Paid`. */
export const payment = defineEvents('payment', { Paid: z.object({ amount }), PaymentRefunded: z.object({ amount }) });

const paymentState = defineState(payment, () => ({ amount: '0' }), {
  Paid: (_, { payload }) => ({ amount: payload.amount }),
  PaymentRefunded: () => ({ amount: '0' }),
});

export const refundPayment = defineCommand({
  name: 'refundPayment',
  input: z.object({ reservationId: z.string() }),
  state: paymentState,
  stream: (input) => input.reservationId,
  decide: (_, { amount }) => (amount === '0' ? [] : { type: 'PaymentRefunded', payload: { amount } }),
});
