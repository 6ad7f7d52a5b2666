import { decimal, defineProjection, t } from '../../src/index.ts';
import { rideOrder } from './events.ts';

/** Rides without a driver touch no row. */
export const driverV1 = defineProjection({
  name: 'driver',
  version: 1,
  events: rideOrder,
  table: {
    driverId: t.text().primaryKey(),
    rides: t.integer(),
    earned: t.decimal(12, 2).index(),
  },
  key: (event) => (event.type === 'OrderCompleted' && event.payload.driverId) || [],
  evolve: {
    OrderCompleted: (driver, { payload }) => ({
      rides: (driver?.rides ?? 0) + 1,
      earned: decimal(driver?.earned ?? 0).plus(payload.price),
    }),
  },
});
