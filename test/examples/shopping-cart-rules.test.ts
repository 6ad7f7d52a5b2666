import { describe, expect, test } from 'vitest';
import { registerCustomer, updateCustomerProfile } from '../../examples/shopping-cart/customer.ts';
import type { customer, ProductItem, shoppingCart } from '../../examples/shopping-cart/events.ts';
import {
  addProductItem,
  cancelShoppingCart,
  confirmShoppingCart,
  openShoppingCart,
  removeProductItem,
} from '../../examples/shopping-cart/shopping-cart.ts';
import { CommandRejected, InvalidInput, type NewEventOf } from '../../src/index.ts';
import { given, now } from '../support/given.ts';

type CartEvent = NewEventOf<typeof shoppingCart>;
type CustomerEvent = NewEventOf<typeof customer>;

const cartId = 'cart-1';
const mug: ProductItem = { productId: 'mug', name: 'Stoneware mug', quantity: 2, unitPrice: '11.40' };
const beans: ProductItem = { productId: 'beans', name: 'Espresso beans', quantity: 1, unitPrice: '18.9' };
const opened: CartEvent = { type: 'ShoppingCartOpened', payload: { customerId: 'ada', openedAt: now } };
const added = (productItem: ProductItem): CartEvent => ({ type: 'ProductItemAdded', payload: { productItem } });
const removed = (productItem: ProductItem): CartEvent => ({ type: 'ProductItemRemoved', payload: { productItem } });
const confirmed: CartEvent = { type: 'ShoppingCartConfirmed', payload: { confirmedAt: now } };
const cancelled: CartEvent = { type: 'ShoppingCartCancelled', payload: { cancelledAt: now } };

describe('a cart', () => {
  test('is opened once', async () => {
    expect(await given().when(openShoppingCart, { cartId, customerId: 'ada' })).toEqual([opened]);
    await refuses(
      given(opened).when(openShoppingCart, { cartId, customerId: 'ada' }),
      "Cart 'cart-1' was opened before.",
    );
  });

  test('accepts products', async () => {
    expect(await given(opened).when(addProductItem, { cartId, productItem: mug })).toEqual([added(mug)]);
  });

  test('accepts more of a product at the same price, in any notation, and refuses another price', async () => {
    const again = { ...beans, unitPrice: '18.90' };
    expect(await given(opened, added(beans)).when(addProductItem, { cartId, productItem: again })).toEqual([
      added(again),
    ]);
    await refuses(
      given(opened, added(beans)).when(addProductItem, { cartId, productItem: { ...beans, unitPrice: '17.90' } }),
      'Espresso beans is in the cart at 18.9 already; remove it before you add it at 17.90.',
    );
  });

  test('accepts a product at another price once all of it was removed', async () => {
    const cheaper = { ...beans, unitPrice: '17.90' };
    const history = [opened, added(beans), removed(beans)];
    expect(await given(...history).when(addProductItem, { cartId, productItem: cheaper })).toEqual([added(cheaper)]);
  });

  test('holds at most 1000 pieces of a product and 100 products', async () => {
    const many = added({ ...mug, quantity: 999 });
    expect(
      await given(opened, many).when(addProductItem, { cartId, productItem: { ...mug, quantity: 1 } }),
    ).toHaveLength(1);
    await refuses(
      given(opened, many).when(addProductItem, { cartId, productItem: mug }),
      'A cart holds at most 1000 pieces of a product.',
    );
    const products = Array.from({ length: 100 }, (_, index) => added({ ...mug, productId: `product-${index}` }));
    await refuses(
      given(opened, ...products).when(addProductItem, { cartId, productItem: mug }),
      'A cart holds at most 100 different products.',
    );
  });

  test('lets its items be removed, at their price, and no more than it holds', async () => {
    const history = [opened, added(mug), added({ ...mug, quantity: 1 }), removed({ ...mug, quantity: 1 })];
    const input = { cartId, productId: 'mug', quantity: 2 };
    expect(await given(...history).when(removeProductItem, input)).toEqual([removed(mug)]);
    await refuses(
      given(...history).when(removeProductItem, { ...input, quantity: 3 }),
      "Cart 'cart-1' holds 2 of Stoneware mug; 3 can't be removed.",
    );
    await refuses(
      given(...history, removed(mug)).when(removeProductItem, input),
      "Cart 'cart-1' holds no product 'mug'.",
    );
  });

  test('is confirmed if it is not empty', async () => {
    expect(await given(opened, added(mug)).when(confirmShoppingCart, { cartId })).toEqual([confirmed]);
    const reason = "Cart 'cart-1' is empty; an empty cart can't be confirmed.";
    await refuses(given(opened).when(confirmShoppingCart, { cartId }), reason);
    await refuses(given(opened, added(mug), removed(mug)).when(confirmShoppingCart, { cartId }), reason);
  });

  test('can be cancelled, empty or not', async () => {
    expect(await given(opened).when(cancelShoppingCart, { cartId })).toEqual([cancelled]);
    expect(await given(opened, added(mug)).when(cancelShoppingCart, { cartId })).toEqual([cancelled]);
  });

  test('does not confuse product ids with properties of objects', async () => {
    for (const productId of ['constructor', '__proto__', 'toString']) {
      const item = { ...mug, productId };
      expect(await given(opened).when(addProductItem, { cartId, productItem: item })).toEqual([added(item)]);
      const input = { cartId, productId, quantity: 2 };
      await refuses(given(opened).when(removeProductItem, input), `Cart 'cart-1' holds no product '${productId}'.`);
      expect(await given(opened, added(item)).when(removeProductItem, input)).toEqual([removed(item)]);
    }
  });
});

describe('only an open cart can change', () => {
  const commands = [
    { command: addProductItem, input: { cartId, productItem: mug } },
    { command: removeProductItem, input: { cartId, productId: 'mug', quantity: 1 } },
    { command: confirmShoppingCart, input: { cartId } },
    { command: cancelShoppingCart, input: { cartId } },
  ];

  test.each(commands)('$command.name is refused before the cart is opened', async ({ command, input }) => {
    await refuses(given().when(command, input), "There is no cart 'cart-1'. Open it first.");
  });

  test.each(commands)('$command.name is refused once the cart is confirmed', async ({ command, input }) => {
    const reason = "Cart 'cart-1' is confirmed; only an open cart can be changed.";
    await refuses(given(opened, added(mug), confirmed).when(command, input), reason);
  });

  test.each(commands)('$command.name is refused once the cart is cancelled', async ({ command, input }) => {
    const reason = "Cart 'cart-1' is cancelled; only an open cart can be changed.";
    await refuses(given(opened, added(mug), cancelled).when(command, input), reason);
  });
});

describe('an item is refused', () => {
  test.each([
    ['a quantity of zero', { quantity: 0 }, 'quantity'],
    ['a negative quantity', { quantity: -1 }, 'quantity'],
    ['half a piece', { quantity: 1.5 }, 'quantity'],
    ['a number for a price', { unitPrice: 12.5 }, 'unitPrice'],
    ['a negative price', { unitPrice: '-1.00' }, 'unitPrice'],
    ['a price with three digits after the point', { unitPrice: '1.005' }, 'unitPrice'],
    ['a price in words', { unitPrice: 'ten' }, 'unitPrice'],
    ['no name', { name: '' }, 'name'],
  ])('with %s', async (_, change, field) => {
    const refused = given(opened).when(addProductItem, { cartId, productItem: { ...mug, ...change } });
    await expect(refused).rejects.toThrow(InvalidInput);
    await expect(refused).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      issues: [{ path: ['productItem', field] }],
    });
  });
});

describe('a customer', () => {
  const customerId = 'ada';
  const profile = { name: 'Ada Brandt', email: 'ada@example.com', city: 'Cork' };
  const registered: CustomerEvent = { type: 'CustomerRegistered', payload: { profile, registeredAt: now } };

  test('is registered once', async () => {
    expect(await given().when(registerCustomer, { customerId, profile })).toEqual([registered]);
    await refuses(
      given(registered).when(registerCustomer, { customerId, profile }),
      "Customer 'ada' is registered already.",
    );
  });

  test('changes its profile; an unchanged profile writes nothing', async () => {
    const moved = { name: 'Ada Brandt', email: 'ada@example.com' };
    expect(await given(registered).when(updateCustomerProfile, { customerId, profile: moved })).toEqual([
      { type: 'CustomerProfileUpdated', payload: { profile: moved, updatedAt: now } },
    ]);
    expect(await given(registered).when(updateCustomerProfile, { customerId, profile })).toEqual([]);
    await refuses(
      given().when(updateCustomerProfile, { customerId, profile }),
      "There is no customer 'ada'. Register it first.",
    );
  });

  test('needs an email address', async () => {
    const refused = given().when(registerCustomer, { customerId, profile: { ...profile, email: 'ada' } });
    await expect(refused).rejects.toMatchObject({ issues: [{ path: ['profile', 'email'] }] });
  });
});

async function refuses(decision: Promise<unknown>, reason: string): Promise<void> {
  await expect(decision).rejects.toThrow(CommandRejected);
  await expect(decision).rejects.toThrow(reason);
}
