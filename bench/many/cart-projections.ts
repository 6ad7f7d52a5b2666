import { defineProjection, type Projection, t } from '../../src/index.ts';
import { cart } from '../carts.ts';

/** Read models of carts with equal rows under different names. Every event changes a row of each of them. */
export function cartProjections(count: number): readonly Projection[] {
  return Array.from({ length: count }, (_, index) =>
    defineProjection({
      name: `cart_${String(index + 1).padStart(3, '0')}`,
      version: 1,
      events: cart,
      table: {
        cartId: t.text().primaryKey(),
        customer: t.text().index(),
        items: t.integer(),
        lastProduct: t.text().nullable(),
      },
      key: (event) => event.streamId,
      evolve: {
        Opened: (_row, { payload: { customer } }) => ({ customer, items: 0, lastProduct: null }),
        ItemAdded: (row, { payload: { quantity, product } }) => ({
          customer: row?.customer ?? 'nobody',
          items: (row?.items ?? 0) + quantity,
          lastProduct: product,
        }),
      },
    }),
  );
}
