import { defineProjection, t } from '../../src/index.ts';
import { rideOrder } from './events.ts';

/** Written with each append: a query after a command returns the command's outcome, through any gateway. */
export const rideOrderV1 = defineProjection({
  name: 'ride_order',
  version: 1,
  mode: 'inline',
  events: rideOrder,
  table: {
    orderId: t.text().primaryKey(),
    status: t.enum(['Waiting', 'Accepted', 'Completed', 'Cancelled']).index(),
    revision: t.integer().describe('1, 2, 3… with each event of the order.'),
    price: t.decimal(8, 2),
    refunded: t.decimal(8, 2),
    riderId: t.text().nullable().index(),
    driverId: t.text().nullable().index(),
    route: t.list(t.object({ zoneId: t.text(), address: t.text().nullable() })),
  },
  history: true,
  key: (event) => event.streamId,
  evolve: {
    OrderPlaced: (order, { payload, streamPosition }) => ({
      ...payload,
      driverId: null,
      status: 'Waiting',
      refunded: order?.refunded ?? '0',
      revision: streamPosition,
    }),
    OrderPriceAdjusted: (order, { payload, streamPosition }) =>
      order && { ...order, price: payload.price, revision: streamPosition },
    OrderAccepted: (order, { payload, streamPosition }) =>
      order && { ...order, driverId: payload.driverId, status: 'Accepted', revision: streamPosition },
    OrderCompleted: (order, { streamPosition }) => order && { ...order, status: 'Completed', revision: streamPosition },
    OrderCancelled: (order, { streamPosition }) => order && { ...order, status: 'Cancelled', revision: streamPosition },
    // Its ride may be recorded later, or in another file.
    FareRefunded: (order, { payload, streamPosition }) => ({
      status: 'Completed',
      price: '0',
      riderId: null,
      driverId: null,
      route: [],
      ...order,
      refunded: order ? order.refunded.plus(payload.amount) : payload.amount,
      revision: streamPosition,
    }),
  },
});
