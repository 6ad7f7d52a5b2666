import { z } from 'zod';
import { decimal, defineEvents, defineProjection, one, t } from '../src/index.ts';

/** The events of most scenarios: carts are opened and filled. */
export const cart = defineEvents('cart', {
  Opened: z.object({ customer: z.string() }),
  ItemAdded: z.object({ product: z.string(), quantity: z.int(), price: z.string() }),
});

/** The appended item in all scenarios that measure writing. */
export const item = { product: 'product-7', quantity: 1, price: '12.50' };
export const itemAdded = { type: 'ItemAdded', payload: item } as const;

/** One row per stream. */
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

/** {@link cartSummary}, folded by the appends themselves. They need not open a cart first. */
export const cartSummaryInline = defineProjection({
  name: 'cart_summary_inline',
  version: 1,
  events: cart,
  mode: 'inline',
  table: cartSummary.columns,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, { payload: { customer } }) => ({ customer, items: 0, total: '0' }),
    ItemAdded: (row, event) => ({
      customer: row?.customer ?? 'nobody',
      items: (row?.items ?? 0) + event.payload.quantity,
      total: row?.total.plus(event.payload.price) ?? event.payload.price,
    }),
  },
});

/** One row per customer. */
export const customerTotal = defineProjection({
  name: 'customer_total',
  version: 1,
  events: cart,
  table: { customer: t.text().primaryKey(), carts: t.integer() },
  key: (event) => (event.type === 'Opened' ? event.payload.customer : []),
  evolve: { Opened: (row) => ({ carts: (row?.carts ?? 0) + 1 }) },
});

/** {@link cartSummary} with a relation to its {@link customerTotal}. */
export const cartOfCustomer = defineProjection({
  name: 'cart_of_customer',
  version: 1,
  events: cart,
  table: cartSummary.columns,
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
  relations: { customerTotal: one('customer_total', { from: 'customer' }) },
});

/** One row per event: nothing is folded, every event is written. */
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

/** One row for each of a hundred products: each page changes every row. */
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

/** {@link cartSummary}, folded in PostgreSQL. */
export const cartSummaryBySql = defineProjection({
  name: 'cart_summary',
  version: 2,
  events: cart,
  table: cartSummary.columns,
  evolveSql: {
    events: ['Opened', 'ItemAdded'],
    rows: `
      select
        stream_id as cart_id,
        max(payload ->> 'customer') as customer,
        coalesce(sum((payload ->> 'quantity')::int), 0) as items,
        coalesce(sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int), 0) as total
      from batch
      group by stream_id`,
    merge: { customer: 'first', items: 'add', total: 'add' },
  },
});

/** {@link productSales}, folded in PostgreSQL. */
export const productSalesBySql = defineProjection({
  name: 'product_sales',
  version: 2,
  events: cart,
  table: productSales.columns,
  evolveSql: {
    events: ['ItemAdded'],
    rows: `
      select
        payload ->> 'product' as product,
        sum((payload ->> 'quantity')::int) as sold,
        sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int) as turnover
      from batch
      group by 1`,
    merge: { sold: 'add', turnover: 'add' },
  },
});
