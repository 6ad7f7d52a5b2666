import { decimal, defineProjection, one, t } from '../../src/index.ts';
import { type ProductItem, shoppingCart } from './events.ts';

export const cartSummaryV1 = defineProjection({
  name: 'cart_summary',
  version: 1,
  events: shoppingCart,
  table: {
    cartId: t.text().primaryKey(),
    customerId: t.text().index(),
    productItemsCount: t.integer(),
    totalAmount: t.decimal(14, 2),
  },
  relations: { customer: one('customer_profile', { from: 'customerId' }) },
  key: (event) => event.streamId,
  evolve: {
    ShoppingCartOpened: (_, { payload }) => ({
      customerId: payload.customerId,
      productItemsCount: 0,
      totalAmount: '0',
    }),
    ProductItemAdded: (cart, { payload: { productItem } }) =>
      cart && {
        ...cart,
        productItemsCount: cart.productItemsCount + productItem.quantity,
        totalAmount: cart.totalAmount.plus(priceOf(productItem)),
      },
    ProductItemRemoved: (cart, { payload: { productItem } }) =>
      cart && {
        ...cart,
        productItemsCount: cart.productItemsCount - productItem.quantity,
        totalAmount: cart.totalAmount.minus(priceOf(productItem)),
      },
  },
});

function priceOf(item: ProductItem) {
  return decimal(item.unitPrice).times(item.quantity);
}
