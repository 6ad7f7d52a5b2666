import { z } from 'zod';
import { CommandRejected, defineCommand, defineState, type PayloadOf } from '../../src/index.ts';
import { cityTime } from './city-time.ts';
import { rideOrder, route } from './events.ts';

export type OrderStatus = 'Waiting' | 'Accepted' | 'Completed' | 'Cancelled';

type Placed = PayloadOf<typeof rideOrder, 'OrderPlaced'>;
type Accepted = PayloadOf<typeof rideOrder, 'OrderAccepted'>;

export type RideOrder =
  | { readonly status: 'None' }
  | ({ readonly status: 'Waiting' } & Placed)
  | ({ readonly status: 'Accepted' } & Placed & Accepted)
  | ({ readonly status: 'Completed' } & Placed & Accepted)
  | ({ readonly status: 'Cancelled' } & Placed & Partial<Accepted>);

/** An order has few events, unless its price is adjusted often. */
export const rideOrderState = defineState(
  rideOrder,
  (): RideOrder => ({ status: 'None' }),
  {
    OrderPlaced: (_, { payload }) => ({ ...payload, status: 'Waiting' }),
    OrderPriceAdjusted: (order, { payload }) => (order.status === 'None' ? order : { ...order, price: payload.price }),
    OrderAccepted: (order, { payload }) =>
      order.status === 'None' ? order : { ...order, ...payload, status: 'Accepted' },
    OrderCompleted: (order) => (order.status === 'Accepted' ? { ...order, status: 'Completed' } : order),
    OrderCancelled: (order) => (order.status === 'None' ? order : { ...order, status: 'Cancelled' }),
  },
  { snapshotEvery: 10 },
);

const orderId = z.string().min(1).max(100);
const price = z.string().regex(/^\d{1,4}\.\d{2}$/, "expected an amount such as '12.50', below 10000");

export const placeOrder = defineCommand({
  name: 'placeOrder',
  description: 'Orders a ride along a route, for a price.',
  input: z.object({ orderId, riderId: z.string().min(1).max(100), route, price }),
  state: rideOrderState,
  emits: ['OrderPlaced'],
  stream: (input) => input.orderId,
  decide({ orderId, ...placed }, order) {
    if (order.status !== 'None') throw refused(`Order '${orderId}' exists already.`, order);
    return { type: 'OrderPlaced', payload: placed };
  },
});

export const adjustPrice = defineCommand({
  name: 'adjustPrice',
  description: 'Changes the price of an order that waits for a driver.',
  input: z.object({ orderId, price }),
  state: rideOrderState,
  emits: ['OrderPriceAdjusted'],
  stream: (input) => input.orderId,
  decide({ orderId, price }, order) {
    expectStatus(orderId, order, 'Waiting');
    return order.price === price ? [] : { type: 'OrderPriceAdjusted', payload: { price } };
  },
});

export const acceptOrder = defineCommand({
  name: 'acceptOrder',
  description: 'A driver takes a waiting order.',
  input: z.object({ orderId, driverId: z.string().min(1).max(100) }),
  state: rideOrderState,
  emits: ['OrderAccepted'],
  stream: (input) => input.orderId,
  decide({ orderId, driverId }, order, { now }) {
    expectStatus(orderId, order, 'Waiting');
    return { type: 'OrderAccepted', payload: { driverId, pickedUpAt: cityTime(now) } };
  },
});

export const completeOrder = defineCommand({
  name: 'completeOrder',
  description: 'The ride has ended.',
  input: z.object({ orderId }),
  state: rideOrderState,
  emits: ['OrderCompleted'],
  stream: (input) => input.orderId,
  decide({ orderId }, order, { now }) {
    expectStatus(orderId, order, 'Accepted');
    const { driverId, pickedUpAt, price, route } = order;
    const [{ zoneId: pickupZoneId }] = route as [Placed['route'][number]]; // a route has two points or more
    return {
      type: 'OrderCompleted',
      payload: { driverId, pickupZoneId, pickedUpAt, droppedOffAt: cityTime(now), price },
    };
  },
});

export const cancelOrder = defineCommand({
  name: 'cancelOrder',
  description: 'Cancels an order that is not completed.',
  input: z.object({ orderId }),
  state: rideOrderState,
  emits: ['OrderCancelled'],
  stream: (input) => input.orderId,
  decide({ orderId }, order) {
    expectStatus(orderId, order, 'Waiting', 'Accepted');
    return { type: 'OrderCancelled', payload: {} };
  },
});

function expectStatus<S extends OrderStatus>(
  orderId: string,
  order: RideOrder,
  ...expected: readonly S[]
): asserts order is Extract<RideOrder, { status: S }> {
  if (expected.some((status) => status === order.status)) return;
  throw refused(
    order.status === 'None'
      ? `There is no order '${orderId}'.`
      : `Order '${orderId}' is ${order.status}, expected ${expected.join(' or ')}.`,
    order,
  );
}

function refused(reason: string, { status }: RideOrder): CommandRejected {
  return new CommandRejected(reason, { status });
}
