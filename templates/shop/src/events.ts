import { defineEvents } from 'refold';
import { z } from 'zod';

export const item = z.object({
  name: z.string().min(1),
  quantity: z.int().positive(),
  unitPrice: z.string().regex(/^\d+\.\d\d$/), // decimals are strings, so they stay exact
});

export const cart = defineEvents('cart', {
  ItemAdded: item,
});
