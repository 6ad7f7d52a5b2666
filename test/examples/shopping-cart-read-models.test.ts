import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import app from '../../examples/shopping-cart/app.ts';
import { cartSummaryV1 } from '../../examples/shopping-cart/cart-summary.v1.ts';
import { cartSummaryV2 } from '../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../examples/shopping-cart/customer-profile.v1.ts';
import { customer, type ProductItem, shoppingCart } from '../../examples/shopping-cart/events.ts';
import { shoppers } from '../../examples/shopping-cart/shoppers.ts';
import type { CommandStream } from '../../src/index.ts';
import {
  type EventFamily,
  globalPosition,
  type NewEvent,
  type NewEventOf,
  type RecordedEvent,
} from '../../src/index.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { now } from '../support/given.ts';
import { createRecorder, ReadTableInMemory } from '../support/in-memory.ts';

type CartEvent = NewEventOf<typeof shoppingCart>;

const mug: ProductItem = { productId: 'mug', name: 'Stoneware mug', quantity: 2, unitPrice: '11.40' };
const beans: ProductItem = { productId: 'beans', name: 'Espresso beans', quantity: 3, unitPrice: '0.1' };
const opened: CartEvent = { type: 'ShoppingCartOpened', payload: { customerId: 'ada', openedAt: now } };
const added = (productItem: ProductItem): CartEvent => ({ type: 'ProductItemAdded', payload: { productItem } });
const removed = (productItem: ProductItem): CartEvent => ({ type: 'ProductItemRemoved', payload: { productItem } });
const confirmed: CartEvent = { type: 'ShoppingCartConfirmed', payload: { confirmedAt: now } };
const cancelled: CartEvent = { type: 'ShoppingCartCancelled', payload: { cancelledAt: now } };

describe('cart_summary@1', () => {
  test('counts pieces and sums their prices', async () => {
    expect(
      await rowsAfter(cartSummaryV1, shoppingCart, [opened, added(mug), added(beans), added(beans), removed(mug)]),
    ).toEqual([{ cartId: 'stream-1', customerId: 'ada', productItemsCount: 6, totalAmount: '0.6' }]);
  });

  test('reads only the events that it needs', () => {
    expect(cartSummaryV1.filter).toEqual([
      { family: 'shopping_cart', types: ['ShoppingCartOpened', 'ProductItemAdded', 'ProductItemRemoved'] },
    ]);
  });
});

describe('cart_summary@2', () => {
  const row = { cartId: 'stream-1', customerId: 'ada' };

  test('shows an opened cart as empty', async () => {
    expect(await rowsAfter(cartSummaryV2, shoppingCart, [opened])).toEqual([
      { ...row, status: 'Opened', productItemsCount: 0, totalAmount: '0', productItems: [] },
    ]);
  });

  test('lists the products of the cart, each once, in the order of first appearance', async () => {
    const history = [
      opened,
      added(mug),
      added(beans),
      added({ ...mug, quantity: 1 }),
      removed({ ...beans, quantity: 1 }),
    ];
    expect(await rowsAfter(cartSummaryV2, shoppingCart, history)).toEqual([
      {
        ...row,
        status: 'Opened',
        productItemsCount: 5,
        totalAmount: '34.4',
        productItems: [
          { ...mug, quantity: 3, unitPrice: '11.4' },
          { ...beans, quantity: 2 },
        ],
      },
    ]);
  });

  test('omits a product that was removed completely', async () => {
    expect(await rowsAfter(cartSummaryV2, shoppingCart, [opened, added(mug), removed(mug)])).toMatchObject([
      { productItemsCount: 0, totalAmount: '0', productItems: [] },
    ]);
  });

  test.each([
    ['Confirmed', confirmed],
    ['Cancelled', cancelled],
  ])('shows a cart as %s', async (status, event) => {
    expect(await rowsAfter(cartSummaryV2, shoppingCart, [opened, added(mug), event])).toMatchObject([{ status }]);
  });
});

describe('customer_profile@1', () => {
  const profile = { name: 'Ada Brandt', email: 'ada@example.com', city: 'Cork' };
  const registered: NewEvent = { type: 'CustomerRegistered', payload: { profile, registeredAt: now } };

  test('shows the latest profile, without the city that it no longer names', async () => {
    const updated = {
      type: 'CustomerProfileUpdated',
      payload: { profile: { name: 'A. Brandt', email: 'a@example.com' }, updatedAt: now },
    };
    expect(await rowsAfter(customerProfileV1, customer, [registered, updated])).toEqual([
      {
        customerId: 'stream-1',
        name: 'A. Brandt',
        email: 'a@example.com',
        city: null,
        registeredAt: now,
        cartsOpened: 0,
        lastCartOpenedAt: null,
      },
    ]);
  });

  test('counts the carts that the customer opened', async () => {
    const record = createRecorder();
    const table = new ReadTableInMemory(customerProfileV1);
    table.fold(await record({ family: customer, streamId: 'ada', events: [registered] }));
    for (const streamId of ['cart-1', 'cart-2']) {
      table.fold(await record({ family: shoppingCart, streamId, events: [opened, added(mug)] }));
    }
    expect(table.plain()).toMatchObject([{ customerId: 'ada', cartsOpened: 2, lastCartOpenedAt: now }]);
  });
});

// Thousands of commands decide and fold here: seconds on an idle machine, minutes on a busy one.
describe('for any actions of shoppers', { timeout: 300_000 }, () => {
  const traffic = fc.integer({ min: 0, max: 2 ** 31 }).map((seed) => ({ seed, toString: () => `seed ${seed}` }));

  test('the rules refuse none of them', async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async ({ seed }) => {
        expect(await eventsOfShoppers(seed, 300)).toHaveLength(300);
      }),
      { numRuns: 20 },
    );
  });

  test('the rows are the same for every interleaving of the carts and every split into batches', async () => {
    await fc.assert(
      fc.asyncProperty(
        traffic,
        fc.infiniteStream(fc.nat()),
        fc.array(fc.integer({ min: 1, max: 40 })),
        async ({ seed }, choices, sizes) => {
          const events = (await eventsOfShoppers(seed, 200)).filter((event) => event.family === 'shopping_cart');
          const shuffled = interleave(events, choices);
          for (const projection of [cartSummaryV1, cartSummaryV2]) {
            expect(foldInBatches(projection, shuffled, sizes)).toEqual(foldInBatches(projection, events, []));
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  test('both versions of the cart summary agree on their common columns, and the items of a cart sum up to its total', async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async ({ seed }) => {
        const events = await eventsOfShoppers(seed, 300);
        const v1 = new ReadTableInMemory(cartSummaryV1);
        const v2 = new ReadTableInMemory(cartSummaryV2);
        v1.fold(events);
        v2.fold(events);
        expect(v2.plain()).toMatchObject(v1.plain() as object[]);
        for (const { productItems, totalAmount, productItemsCount } of v2.plain() as Summary[]) {
          expect(productItems.reduce((pieces, item) => pieces + item.quantity, 0)).toBe(productItemsCount);
          const cents = productItems.reduce((sum, item) => sum + inCents(item.unitPrice) * BigInt(item.quantity), 0n);
          expect(cents).toBe(inCents(totalAmount));
        }
      }),
      { numRuns: 20 },
    );
  });
});

interface Summary {
  readonly productItemsCount: number;
  readonly totalAmount: string;
  readonly productItems: readonly ProductItem[];
}

async function rowsAfter(
  projection: Projection,
  family: EventFamily,
  history: readonly NewEvent[],
): Promise<unknown[]> {
  const table = new ReadTableInMemory(projection);
  table.fold(await createRecorder()({ family, streamId: 'stream-1', events: history }));
  return table.plain();
}

/** Lets shoppers run commands until they have produced this many events. */
async function eventsOfShoppers(seed: number, count: number): Promise<RecordedEvent[]> {
  const record = createRecorder();
  const states = new Map<string, unknown>();
  const events: RecordedEvent[] = [];
  const actions = shoppers(seed);
  while (events.length < count) {
    const { command, input } = actions.next(true).value;
    expect(app.commands).toContain(command);
    const parsed = await command.parse(input);
    const streams = command.streamsOf(parsed);
    const [{ state: declared, streamId }] = streams as [CommandStream]; // each command is about one cart
    const state = states.has(streamId) ? states.get(streamId) : declared.initial();
    const context = { streamVersions: [0], metadata: {}, now, loaded: undefined };
    const [decided = []] = command.decide(parsed, [state], streams, context);
    const recorded = await record({ family: declared.family, streamId, events: decided });
    states.set(
      streamId,
      recorded.reduce<unknown>((before, event) => declared.apply(before, event), state),
    );
    events.push(...recorded);
  }
  return events;
}

/** Another order of the whole log that preserves each stream's order. */
function interleave(events: readonly RecordedEvent[], choices: Iterator<number>): RecordedEvent[] {
  const streams = [...Map.groupBy(events, (event) => event.streamId).values()];
  const result: RecordedEvent[] = [];
  for (let left = events.length; left > 0; left--) {
    const live = streams.filter((stream) => stream.length > 0);
    const next = live[(choices.next().value ?? 0) % live.length]?.shift();
    if (next) result.push({ ...next, position: globalPosition(BigInt(result.length + 1)) });
  }
  return result;
}

function foldInBatches(projection: Projection, events: readonly RecordedEvent[], sizes: readonly number[]): unknown[] {
  const table = new ReadTableInMemory(projection);
  let start = 0;
  for (const size of sizes) {
    table.fold(events.slice(start, start + size));
    start += size;
  }
  table.fold(events.slice(start));
  return table.plain();
}

function inCents(amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(2, '0'));
}
