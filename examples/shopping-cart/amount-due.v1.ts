import { decimal, defineProjection, t } from '../../src/index.ts';
import { type ProductItem, shoppingCart } from './events.ts';

/** What the customer pays. Its rows commit with the append, so no payment page can show an older amount. */
export const amountDueV1 = defineProjection({
  name: 'amount_due',
  version: 1,
  mode: 'inline',
  events: shoppingCart,
  table: { cartId: t.text().primaryKey(), amount: t.decimal(14, 2) },
  key: (event) => event.streamId,
  evolve: {
    ProductItemAdded: (due, { payload: { productItem } }) => ({
      amount: priceOf(productItem).plus(due?.amount ?? 0),
    }),
    ProductItemRemoved: (due, { payload: { productItem } }) =>
      due && { amount: due.amount.minus(priceOf(productItem)) },
    ShoppingCartCancelled: () => null,
  },
});

function priceOf(item: ProductItem) {
  return decimal(item.unitPrice).times(item.quantity);
}
