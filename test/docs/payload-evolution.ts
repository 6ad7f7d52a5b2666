import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

interface OrderPlacedV1 {
  readonly customer: string;
  readonly total: number;
  readonly street: string;
  readonly city: string;
  readonly coupon: string;
}

interface OrderPlacedV2 extends Omit<OrderPlacedV1, 'total'> {
  readonly totalCents: number;
}

/** The events of the guide on payloads in older shapes, docs/upcasting.md. */
export const order = defineEvents(
  'order',
  {
    OrderPlaced: z.object({
      customerId: z.string(),
      totalCents: z.int(),
      address: z.object({ street: z.string(), city: z.string() }),
      channel: z.enum(['shop', 'phone', 'unknown']),
    }),
  },
  {
    upcasters: {
      OrderPlaced: [
        // version 1 → 2: another unit
        ({ total, ...order }: OrderPlacedV1) => ({ ...order, totalCents: Math.round(total * 100) }),
        // version 2 → 3: renamed, merged, dropped and added fields
        ({ customer, street, city, coupon: _, ...order }: OrderPlacedV2) => ({
          ...order,
          customerId: customer,
          address: { street, city },
          channel: 'unknown' as const,
        }),
      ],
    },
  },
);

interface PersonV1 {
  readonly name: string;
}

export const person = defineEvents(
  'person',
  { Registered: z.object({ firstName: z.string(), lastName: z.string().nullable() }) },
  {
    upcasters: {
      Registered: [
        ({ name }: PersonV1) => {
          const [firstName = '', ...others] = name.split(' ');
          return { firstName, lastName: others.length > 0 ? others.join(' ') : null };
        },
      ],
    },
  },
);
