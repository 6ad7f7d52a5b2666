import { z } from 'zod';
import { CommandRejected, decimal, defineCommand, defineState } from '../../src/index.ts';
import { type ProductItem, productItem, shoppingCart } from './events.ts';

/** What is in an open cart: one entry per product. */
type Items = readonly ProductItem[];

type ShoppingCart =
  | { readonly status: 'Empty' }
  | { readonly status: 'Opened'; readonly items: Items }
  | { readonly status: 'Confirmed' }
  | { readonly status: 'Cancelled' };

export const shoppingCartState = defineState(shoppingCart, (): ShoppingCart => ({ status: 'Empty' }), {
  ShoppingCartOpened: () => ({ status: 'Opened', items: [] }),
  ProductItemAdded: (cart, { payload }) => withQuantity(cart, payload.productItem, 1),
  ProductItemRemoved: (cart, { payload }) => withQuantity(cart, payload.productItem, -1),
  ShoppingCartConfirmed: () => ({ status: 'Confirmed' }),
  ShoppingCartCancelled: () => ({ status: 'Cancelled' }),
});

const cartId = z.string().min(1).max(100);

// Limits that keep sums within the read models' columns, and carts realistic.
const maxProducts = 100;
const maxPiecesOfAProduct = 1000;

export const openShoppingCart = defineCommand({
  name: 'openShoppingCart',
  description: 'Opens a new cart for a customer.',
  input: z.object({ cartId, customerId: z.string().min(1).max(100) }),
  state: shoppingCartState,
  emits: ['ShoppingCartOpened'],
  stream: (input) => input.cartId,
  decide({ cartId, customerId }, cart, { now }) {
    if (cart.status !== 'Empty')
      throw new CommandRejected(`Cart '${cartId}' was opened before.`, { status: cart.status });
    return { type: 'ShoppingCartOpened', payload: { customerId, openedAt: now } };
  },
});

export const addProductItem = defineCommand({
  name: 'addProductItem',
  description: 'Puts a number of pieces of a product into an open cart.',
  input: z.object({ cartId, productItem }),
  state: shoppingCartState,
  emits: ['ProductItemAdded'],
  stream: (input) => input.cartId,
  decide({ cartId, productItem }, cart) {
    const items = itemsOf(cartId, cart);
    const { productId, name, quantity, unitPrice } = productItem;
    const present = items.find((item) => item.productId === productId);
    if (!present && items.length >= maxProducts) {
      throw new CommandRejected(`A cart holds at most ${maxProducts} different products.`);
    }
    if (present && !decimal(present.unitPrice).eq(unitPrice)) {
      throw new CommandRejected(
        `${name} is in the cart at ${present.unitPrice} already; remove it before you add it at ${unitPrice}.`,
        { productId, unitPrice: present.unitPrice },
      );
    }
    if ((present?.quantity ?? 0) + quantity > maxPiecesOfAProduct) {
      throw new CommandRejected(`A cart holds at most ${maxPiecesOfAProduct} pieces of a product.`, {
        productId,
        quantity: present?.quantity ?? 0,
      });
    }
    return { type: 'ProductItemAdded', payload: { productItem } };
  },
});

export const removeProductItem = defineCommand({
  name: 'removeProductItem',
  description: 'Takes a number of pieces of a product out of an open cart.',
  input: z.object({ cartId, productId: productItem.shape.productId, quantity: productItem.shape.quantity }),
  state: shoppingCartState,
  emits: ['ProductItemRemoved'],
  stream: (input) => input.cartId,
  decide({ cartId, productId, quantity }, cart) {
    const present = itemsOf(cartId, cart).find((item) => item.productId === productId);
    if (!present) throw new CommandRejected(`Cart '${cartId}' holds no product '${productId}'.`, { productId });
    if (quantity > present.quantity) {
      throw new CommandRejected(
        `Cart '${cartId}' holds ${present.quantity} of ${present.name}; ${quantity} can't be removed.`,
        { productId, quantity: present.quantity },
      );
    }
    return { type: 'ProductItemRemoved', payload: { productItem: { ...present, quantity } } };
  },
});

export const confirmShoppingCart = defineCommand({
  name: 'confirmShoppingCart',
  description: 'Confirms an open cart and orders its items.',
  input: z.object({ cartId }),
  state: shoppingCartState,
  emits: ['ShoppingCartConfirmed'],
  stream: (input) => input.cartId,
  decide({ cartId }, cart, { now }) {
    if (itemsOf(cartId, cart).length === 0) {
      throw new CommandRejected(`Cart '${cartId}' is empty; an empty cart can't be confirmed.`);
    }
    return { type: 'ShoppingCartConfirmed', payload: { confirmedAt: now } };
  },
});

export const cancelShoppingCart = defineCommand({
  name: 'cancelShoppingCart',
  description: 'Cancels an open cart.',
  input: z.object({ cartId }),
  state: shoppingCartState,
  emits: ['ShoppingCartCancelled'],
  stream: (input) => input.cartId,
  decide({ cartId }, cart, { now }) {
    itemsOf(cartId, cart);
    return { type: 'ShoppingCartCancelled', payload: { cancelledAt: now } };
  },
});

/** The items of an open cart; any other cart refuses the command. */
function itemsOf(cartId: string, cart: ShoppingCart): Items {
  switch (cart.status) {
    case 'Opened':
      return cart.items;
    case 'Empty':
      throw new CommandRejected(`There is no cart '${cartId}'. Open it first.`, { status: cart.status });
    case 'Confirmed':
    case 'Cancelled':
      throw new CommandRejected(`Cart '${cartId}' is ${cart.status.toLowerCase()}; only an open cart can be changed.`, {
        status: cart.status,
      });
  }
}

function withQuantity(cart: ShoppingCart, item: ProductItem, sign: 1 | -1): ShoppingCart {
  if (cart.status !== 'Opened') return cart;
  const present = cart.items.find(({ productId }) => productId === item.productId);
  const quantity = (present?.quantity ?? 0) + sign * item.quantity;
  const others = cart.items.filter(({ productId }) => productId !== item.productId);
  return { status: 'Opened', items: quantity > 0 ? [...others, { ...item, quantity }] : others };
}
