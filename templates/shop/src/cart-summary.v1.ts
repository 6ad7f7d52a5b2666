import { defineProjection, t } from 'refold';
import { cart } from './events.ts';

export const cartSummaryV1 = defineProjection({
  name: 'cart_summary',
  version: 1,
  events: cart,
  table: {
    cartId: t.text().primaryKey(),
    itemsCount: t.integer().index(),
  },
  key: (event) => event.streamId,
  evolve: {
    ItemAdded: (row, { payload }) => ({ itemsCount: (row?.itemsCount ?? 0) + payload.quantity }),
  },
});
