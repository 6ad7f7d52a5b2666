import { z } from 'zod';
import { CommandRejected, defineCommand, defineEvents, defineProjection, defineState, t } from '../../../src/index.ts';

export const cart = defineEvents('shopping_cart', {
  ProductItemAdded: z.object({ productId: z.string(), quantity: z.int() }),
  ShoppingCartConfirmed: z.object({ confirmedAt: z.iso.datetime() }),
});

const cartState = defineState(cart, () => ({ confirmed: false }), {
  ShoppingCartConfirmed: () => ({ confirmed: true }),
});

export const addProductItem = defineCommand({
  name: 'addProductItem',
  input: z.object({ cartId: z.string(), productId: z.string(), quantity: z.int().positive() }),
  state: cartState,
  stream: ({ cartId }) => cartId,
  decide({ productId, quantity }, { confirmed }) {
    if (confirmed) throw new CommandRejected('A confirmed cart can’t be changed.');
    return { type: 'ProductItemAdded', payload: { productId, quantity } };
  },
});

export const cartSummaryV1 = defineProjection({
  name: 'cart_summary',
  version: 1,
  mode: 'inline',
  events: cart,
  table: { cartId: t.text().primaryKey(), items: t.integer(), confirmed: t.boolean() },
  key: (event) => event.streamId,
  evolve: {
    ProductItemAdded: (row, { payload }) => ({ items: (row?.items ?? 0) + payload.quantity, confirmed: false }),
    ShoppingCartConfirmed: (row) => row && { ...row, confirmed: true },
  },
});
