import { decimal, defineProjection, t } from '../src/index.ts';
import { cart } from './carts.ts';

/** One row for each of ten groups of carts: all events change the same few rows. */
export const hotGroups = defineProjection({
  name: 'hot_groups',
  version: 1,
  events: cart,
  table: { group: t.text().primaryKey(), carts: t.integer(), items: t.integer(), turnover: t.decimal(16, 2) },
  key: (event) => `group-${event.streamId.slice(-1)}`,
  evolve: {
    Opened: (row) => (row ? { ...row, carts: row.carts + 1 } : { carts: 1, items: 0, turnover: '0' }),
    ItemAdded: (row, { payload }) => ({
      carts: row?.carts ?? 0,
      items: (row?.items ?? 0) + payload.quantity,
      turnover: decimal(payload.price)
        .times(payload.quantity)
        .plus(row?.turnover ?? 0),
    }),
  },
});

/** Each item counts in three rows: of its product, of its cart and of its quantity. */
export const salesBy = defineProjection({
  name: 'sales_by',
  version: 1,
  events: cart,
  table: {
    dimension: t.text().primaryKey(),
    value: t.text().primaryKey(),
    sold: t.integer(),
    turnover: t.decimal(16, 2),
  },
  key: (event) =>
    event.type === 'ItemAdded'
      ? [
          { dimension: 'product', value: event.payload.product },
          { dimension: 'cart', value: event.streamId },
          { dimension: 'quantity', value: String(event.payload.quantity) },
        ]
      : [],
  evolve: {
    ItemAdded: (row, { payload }) => ({
      sold: (row?.sold ?? 0) + payload.quantity,
      turnover: decimal(payload.price)
        .times(payload.quantity)
        .plus(row?.turnover ?? 0),
    }),
  },
});

interface Line {
  readonly product: string;
  readonly quantity: number;
  readonly price: string;
}

/** One row per cart with its lines in it: a document that grows with each event. */
export const cartDocument = defineProjection({
  name: 'cart_document',
  version: 1,
  events: cart,
  table: {
    cartId: t.text().primaryKey(),
    customer: t.text(),
    lines: t.json<readonly Line[]>(),
  },
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, { payload }) => ({ customer: payload.customer, lines: [] }),
    ItemAdded: (row, { payload }) => row && { ...row, lines: [...row.lines, payload] },
  },
});
