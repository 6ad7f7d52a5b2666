import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

/** An exact decimal with two digits. */
const money = z.string().regex(/^\d{1,6}\.\d{2}$/);

/** A taxi zone of New York, `1` to `265`. */
const zoneId = z.string().regex(/^[1-9]\d{0,2}$/);

/** In the city's own time, without an offset: the public rides name none. */
const localTime = z.iso.datetime({ local: true });

/** From the pickup to the destination. */
export const route = z
  .array(z.object({ zoneId, address: z.string().min(1).max(200).nullable() }).meta({ id: 'Waypoint' }))
  .min(2)
  .max(10);

/** One stream per order. */
export const rideOrder = defineEvents('ride_order', {
  OrderPlaced: z.object({ riderId: z.string().nullable(), route, price: money }),
  OrderPriceAdjusted: z.object({ price: money }),
  /** Public rides name no driver. */
  OrderAccepted: z.object({ driverId: z.string().nullable(), pickedUpAt: localTime }),
  OrderCompleted: z.object({
    driverId: z.string().nullable(),
    pickupZoneId: zoneId,
    pickedUpAt: localTime,
    droppedOffAt: localTime,
    price: money,
  }),
  OrderCancelled: z.object({}),
  /** It can be recorded before its ride: public files list a negative ride before the one that it takes back. */
  FareRefunded: z.object({ pickupZoneId: zoneId, pickedUpAt: localTime, amount: money }),
});

/** One stream per zone. */
export const zone = defineEvents('zone', {
  ZoneNamed: z.object({ borough: z.string(), name: z.string() }),
});
