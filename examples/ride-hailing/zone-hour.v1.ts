import { decimal, defineProjection, one, t } from '../../src/index.ts';
import { rideOrder } from './events.ts';

/** The rides by zone and hour of their pickup, however late they are recorded. Hours are those of the city's clocks. */
export const zoneHourV1 = defineProjection({
  name: 'zone_hour',
  version: 1,
  events: rideOrder,
  table: {
    zoneId: t.text().primaryKey(),
    day: t.date().primaryKey().index(),
    hour: t.integer().primaryKey(),
    rides: t.integer(),
    refunds: t.integer(),
    revenue: t.decimal(12, 2).index().describe('Prices less refunds.'),
  },
  relations: { zone: one('zone', { from: 'zoneId' }) },
  key(event) {
    if (event.type !== 'OrderCompleted' && event.type !== 'FareRefunded') return [];
    const { pickupZoneId: zoneId, pickedUpAt } = event.payload;
    return { zoneId, day: pickedUpAt.slice(0, 10), hour: Number(pickedUpAt.slice(11, 13)) };
  },
  evolve: {
    OrderCompleted: (hour, { payload }) => ({
      rides: (hour?.rides ?? 0) + 1,
      refunds: hour?.refunds ?? 0,
      revenue: decimal(hour?.revenue ?? 0).plus(payload.price),
    }),
    FareRefunded: (hour, { payload }) => ({
      rides: hour?.rides ?? 0,
      refunds: (hour?.refunds ?? 0) + 1,
      revenue: decimal(hour?.revenue ?? 0).minus(payload.amount),
    }),
  },
});
