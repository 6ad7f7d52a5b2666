import { decimal, defineProjection, t } from 'refold';
import { cart } from './events.ts';

/** The second version also has the total. Refold builds it from the log while the first one serves. */
export const cartSummaryV2 = defineProjection({
  name: 'cart_summary',
  version: 2,
  events: cart,
  table: {
    cartId: t.text().primaryKey(),
    itemsCount: t.integer().index(),
    totalAmount: t.decimal(14, 2).index(),
  },
  key: (event) => event.streamId,
  evolve: {
    ItemAdded: (row, { payload }) => ({
      itemsCount: (row?.itemsCount ?? 0) + payload.quantity,
      totalAmount: decimal(payload.unitPrice)
        .times(payload.quantity)
        .plus(row?.totalAmount ?? 0),
    }),
  },
});
