import { afterAll, beforeAll, expect, test } from 'vitest';
import app from '../../examples/shopping-cart/app.ts';
import { createShopClient } from '../../examples/shopping-cart/client.ts';
import { openShoppingCart } from '../../examples/shopping-cart/shopping-cart.ts';
import { createRefold, type Refold } from '../../src/refold.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  refold = await createRefold({
    ...app,
    database: { ...app.database, url: database.url },
    gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
  });
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

test('a client with generated types writes, reads its own write, and sees the change', async () => {
  await refold.execute(openShoppingCart, { cartId: 'c1', customerId: 'ada' });
  const shop = createShopClient(`${refold.url}/graphql`);
  const changes = shop.cartChanges('c1');
  const productItem = { productId: 'mug', name: 'Mug', quantity: 2, unitPrice: '12.50' };
  const { addProductItem } = await shop.addProductItem({ cartId: 'c1', productItem });
  expect(addProductItem?.cartSummary).toEqual({ cartId: 'c1', totalAmount: '25.00', productItemsCount: 2 });
  const { cartSummaries } = await shop.openCarts(10, addProductItem?.position);
  expect(cartSummaries.nodes).toEqual([
    { cartId: 'c1', totalAmount: '25.00', productItems: [{ name: 'Mug', quantity: 2 }] },
  ]);
  // The states before the change come first, unless newer ones replace them.
  for await (const { data } of changes) {
    if (data?.cartSummary?.totalAmount !== '25.00') continue;
    expect(data.cartSummary).toEqual({ cartId: 'c1', totalAmount: '25.00', status: 'Opened' });
    break;
  }
  await shop.close();
});
