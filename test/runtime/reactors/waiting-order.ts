import { z } from 'zod';
import { defineEvents } from '../../../src/index.ts';

/** Orders that are paid, or noted, by events of other streams. */
export const order = defineEvents('order', {
  Placed: z.object({}),
  Paid: z.object({ order: z.string(), amount: z.number() }),
  Noted: z.object({ order: z.string(), text: z.string() }),
});
