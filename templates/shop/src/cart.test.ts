import { test } from 'node:test';
import { givenEvents, givenStream } from 'refold/testing';
import { addItem } from './add-item.ts';
import { cartSummaryV1 } from './cart-summary.v1.ts';
import { cartSummaryV2 } from './cart-summary.v2.ts';
import { cart } from './events.ts';

const mug = { name: 'Mug', quantity: 2, unitPrice: '12.50' };
const added = { type: 'ItemAdded', payload: mug } as const;

test('an item is added to the cart', async () => {
  await givenStream(cart)
    .when(addItem, { cartId: 'c1', ...mug })
    .thenEvents(added);
});

test('both versions count the items, and the second one also their total', async () => {
  const given = givenEvents(
    { family: cart, streamId: 'c1', events: [added, added] },
    { family: cart, streamId: 'c2', events: [added] },
  );
  const first = given.projectedBy(cartSummaryV1);
  await first.thenRows({ cartId: 'c1', itemsCount: 4 }, { cartId: 'c2', itemsCount: 2 });
  await first.thenReplayable();
  const second = given.projectedBy(cartSummaryV2);
  await second.thenRows(
    { cartId: 'c1', itemsCount: 4, totalAmount: '50.00' },
    { cartId: 'c2', itemsCount: 2, totalAmount: '25.00' },
  );
  await second.thenReplayable();
});
