import { z } from 'zod';
import { decimal, defineEvents, defineProjection, t } from '../src/index.ts';

/** The events of most scenarios: carts that are opened and filled. */
export const cart = defineEvents('cart', {
  Opened: z.object({ customer: z.string() }),
  ItemAdded: z.object({ product: z.string(), quantity: z.int(), price: z.string() }),
});

/** One row for each stream. */
export const cartSummary = defineProjection({
  name: 'cart_summary',
  version: 1,
  events: cart,
  table: {
    cartId: t.text().primaryKey(),
    customer: t.text().index(),
    items: t.integer(),
    total: t.decimal(14, 2).index(),
  },
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, { payload }) => ({ customer: payload.customer, items: 0, total: '0' }),
    ItemAdded: (row, { payload }) =>
      row && {
        ...row,
        items: row.items + payload.quantity,
        total: row.total.plus(decimal(payload.price).times(payload.quantity)),
      },
  },
});

/** One row for each event: nothing is folded, all is written. */
export const cartLines = defineProjection({
  name: 'cart_lines',
  version: 1,
  events: cart,
  table: {
    cartId: t.text().primaryKey(),
    line: t.integer().primaryKey(),
    product: t.text(),
    quantity: t.integer(),
    price: t.decimal(10, 2),
  },
  key: (event) => ({ cartId: event.streamId, line: event.streamPosition }),
  evolve: {
    Opened: () => ({ product: '', quantity: 0, price: '0' }),
    ItemAdded: (_, { payload }) => payload,
  },
});

/** One row for each of a hundred products: every row is touched by each page. */
export const productSales = defineProjection({
  name: 'product_sales',
  version: 1,
  events: cart,
  table: { product: t.text().primaryKey(), sold: t.integer(), turnover: t.decimal(16, 2) },
  key: (event) => (event.type === 'ItemAdded' ? event.payload.product : []),
  evolve: {
    ItemAdded: (row, { payload }) => ({
      sold: (row?.sold ?? 0) + payload.quantity,
      turnover: decimal(payload.price)
        .times(payload.quantity)
        .plus(row?.turnover ?? 0),
    }),
  },
});

/** One row for each of a hundred groups of carts. */
export const groupTotals = defineProjection({
  name: 'group_totals',
  version: 1,
  events: cart,
  table: { group: t.text().primaryKey(), items: t.integer() },
  key: (event) => `group-${event.streamId.slice(-2)}`,
  evolve: {
    Opened: (row) => row ?? { items: 0 },
    ItemAdded: (row, { payload }) => ({ items: (row?.items ?? 0) + payload.quantity }),
  },
});
