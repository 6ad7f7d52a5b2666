import { defineCommand } from 'refold';
import { z } from 'zod';
import { cart, item } from './events.ts';

export const addItem = defineCommand({
  name: 'addItem',
  input: item.extend({ cartId: z.string().min(1) }),
  events: cart,
  stream: ({ cartId }) => cartId,
  decide: ({ cartId: _, ...payload }) => ({ type: 'ItemAdded', payload }),
});
