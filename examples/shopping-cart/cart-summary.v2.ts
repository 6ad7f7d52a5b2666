import { decimal, defineProjection, one, t } from '../../src/index.ts';
import { type ProductItem, shoppingCart } from './events.ts';

export const cartSummaryV2 = defineProjection({
  name: 'cart_summary',
  version: 2,
  events: shoppingCart,
  table: {
    cartId: t.text().primaryKey(),
    customerId: t.text().index(),
    status: t.enum(['Opened', 'Confirmed', 'Cancelled']).index(),
    productItemsCount: t.integer(),
    totalAmount: t.decimal(14, 2).index(),
    productItems: t
      .list(t.object({ productId: t.text(), name: t.text(), quantity: t.integer(), unitPrice: t.decimal(8, 2) }))
      .index(),
  },
  relations: { customer: one('customer_profile', { from: 'customerId' }) },
  history: true,
  key: (event) => event.streamId,
  evolve: {
    ShoppingCartOpened: (_, { payload }) => ({
      customerId: payload.customerId,
      status: 'Opened',
      productItemsCount: 0,
      totalAmount: '0',
      productItems: [],
    }),
    ProductItemAdded: (cart, { payload: { productItem } }) =>
      cart && {
        ...cart,
        productItemsCount: cart.productItemsCount + productItem.quantity,
        totalAmount: cart.totalAmount.plus(priceOf(productItem)),
        productItems: cart.productItems.some(sameProduct(productItem))
          ? cart.productItems.map(changedBy(productItem, productItem.quantity))
          : [...cart.productItems, productItem],
      },
    ProductItemRemoved: (cart, { payload: { productItem } }) =>
      cart && {
        ...cart,
        productItemsCount: cart.productItemsCount - productItem.quantity,
        totalAmount: cart.totalAmount.minus(priceOf(productItem)),
        productItems: cart.productItems
          .map(changedBy(productItem, -productItem.quantity))
          .filter((item) => item.quantity > 0),
      },
    ShoppingCartConfirmed: (cart) => cart && { ...cart, status: 'Confirmed' },
    ShoppingCartCancelled: (cart) => cart && { ...cart, status: 'Cancelled' },
  },
});

function priceOf(item: ProductItem) {
  return decimal(item.unitPrice).times(item.quantity);
}

function sameProduct(product: ProductItem) {
  return (item: { productId: string }) => item.productId === product.productId;
}

function changedBy(product: ProductItem, pieces: number) {
  return <Item extends { productId: string; quantity: number }>(item: Item): Item =>
    item.productId === product.productId ? { ...item, quantity: item.quantity + pieces } : item;
}
