import { AssertionError } from 'node:assert/strict';
import { expect, test } from 'vitest';
import { cartSummaryV2 } from '../../examples/shopping-cart/cart-summary.v2.ts';
import { shoppingCart } from '../../examples/shopping-cart/events.ts';
import { addProductItem, confirmShoppingCart, openShoppingCart } from '../../examples/shopping-cart/shopping-cart.ts';
import { defineProjection, t } from '../../src/index.ts';
import { createInMemoryLog, givenEvents, givenStream } from '../../src/testing.ts';

const now = '2026-03-01T10:00:00.000Z';
const opened = { type: 'ShoppingCartOpened', payload: { customerId: 'ada', openedAt: now } } as const;
const productItem = { productId: 'mug', name: 'Mug', quantity: 2, unitPrice: '12.50' };
const added = { type: 'ProductItemAdded', payload: { productItem } } as const;

test('a command is given a history and decides: events, nothing, or a rejection', async () => {
  await givenStream(shoppingCart, opened).when(addProductItem, { cartId: 'c1', productItem }).thenEvents(added);
  await givenStream(shoppingCart, opened, added)
    .when(confirmShoppingCart, { cartId: 'c1' }, { now })
    .thenEvents({ type: 'ShoppingCartConfirmed', payload: { confirmedAt: now } });
  await givenStream(shoppingCart, opened).when(openShoppingCart, { cartId: 'c1', customerId: 'ada' }).thenRejected();
});

test('what is decided otherwise fails the test that says so', async () => {
  const decision = givenStream(shoppingCart, opened).when(addProductItem, { cartId: 'c1', productItem });
  await expect(decision.thenNothing()).rejects.toBeInstanceOf(AssertionError);
  await expect(decision.thenRejected()).rejects.toThrow("Expected 'addProductItem' to be rejected, but it led to");
  const rejected = givenStream(shoppingCart).when(confirmShoppingCart, { cartId: 'c1' });
  await expect(rejected.thenRejected('Another reason.')).rejects.toBeInstanceOf(AssertionError);
  await expect(givenStream(shoppingCart).when(addProductItem, {}).thenRejected()).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
  });
});

test('a projection is given events and has rows', async () => {
  const projected = givenEvents({ family: shoppingCart, streamId: 'c1', events: [opened, added] }).projectedBy(
    cartSummaryV2,
  );
  const row = {
    cartId: 'c1',
    customerId: 'ada',
    status: 'Opened',
    productItemsCount: 2,
    totalAmount: '25',
    productItems: [productItem],
  };
  await projected.thenRows(row);
  await projected.thenReplayable();
  await expect(projected.thenRows({ ...row, totalAmount: '26' })).rejects.toBeInstanceOf(AssertionError);
  await expect(projected.thenRows()).rejects.toBeInstanceOf(AssertionError);
});

test('a projection that remembers something beside its rows is not replayable', async () => {
  let seen = 0;
  const impure = defineProjection({
    name: 'impure',
    version: 1,
    events: shoppingCart,
    table: { cartId: t.text().primaryKey(), seen: t.integer() },
    key: (event) => event.streamId,
    evolve: { ShoppingCartOpened: () => ({ seen: ++seen }) },
  });
  const projected = givenEvents({ family: shoppingCart, streamId: 'c1', events: [opened] }).projectedBy(impure);
  await expect(projected.thenReplayable()).rejects.toThrow('impure@1 makes other rows');
});

test('the log in memory checks versions and payloads as the real one does', async () => {
  const log = createInMemoryLog();
  await log.append({ family: shoppingCart, streamId: 'c1', events: [opened, added], expectedVersion: 'no-stream' });
  await expect(
    log.append({ family: shoppingCart, streamId: 'c1', events: [added], expectedVersion: 1 }),
  ).rejects.toMatchObject({ code: 'CONCURRENCY_CONFLICT', actual: 2 });
  await expect(
    log.append({ family: shoppingCart, streamId: 'c1', events: [{ type: 'ProductItemAdded', payload: {} }] }),
  ).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
  expect(log.stream(shoppingCart, 'c1').map(({ streamPosition, position }) => [streamPosition, position])).toEqual([
    [1, 1n],
    [2, 2n],
  ]);
});
