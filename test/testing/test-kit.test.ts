import { AssertionError } from 'node:assert/strict';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { cartSummaryV2 } from '../../examples/shopping-cart/cart-summary.v2.ts';
import { shoppingCart } from '../../examples/shopping-cart/events.ts';
import { addProductItem, confirmShoppingCart, openShoppingCart } from '../../examples/shopping-cart/shopping-cart.ts';
import {
  beginning,
  CommandRejected,
  defineCommand,
  defineEvents,
  defineProjection,
  defineState,
  type StateOptions,
  t,
} from '../../src/index.ts';
import { createInMemoryLog, givenEvents, givenStream } from '../../src/testing.ts';

const now = '2026-03-01T10:00:00.000Z';
const opened = { type: 'ShoppingCartOpened', payload: { customerId: 'ada', openedAt: now } } as const;
const productItem = { productId: 'mug', name: 'Mug', quantity: 2, unitPrice: '12.50' };
const added = { type: 'ProductItemAdded', payload: { productItem } } as const;

test('a command decides from a given history: events, nothing, or a rejection', async () => {
  await givenStream(shoppingCart, opened).when(addProductItem, { cartId: 'c1', productItem }).thenEvents(added);
  await givenStream(shoppingCart, opened, added)
    .when(confirmShoppingCart, { cartId: 'c1' }, { now })
    .thenEvents({ type: 'ShoppingCartConfirmed', payload: { confirmedAt: now } });
  await givenStream(shoppingCart, opened).when(openShoppingCart, { cartId: 'c1', customerId: 'ada' }).thenRejected();
});

test('an unexpected decision fails the test', async () => {
  const decision = givenStream(shoppingCart, opened).when(addProductItem, { cartId: 'c1', productItem });
  await expect(decision.thenNothing()).rejects.toBeInstanceOf(AssertionError);
  await expect(decision.thenRejected()).rejects.toThrow("Expected 'addProductItem' to be rejected, but it led to");
  const rejected = givenStream(shoppingCart).when(confirmShoppingCart, { cartId: 'c1' });
  await expect(rejected.thenRejected('Another reason.')).rejects.toBeInstanceOf(AssertionError);
  await expect(givenStream(shoppingCart).when(addProductItem, {}).thenRejected()).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
  });
});

test('a projection has rows after given events', async () => {
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

test('a projection that keeps state besides its rows is not replayable', async () => {
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
  await expect(projected.thenReplayable()).rejects.toThrow('impure@1 returns other rows');
});

test('the log in memory checks versions and payloads like the real log', async () => {
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

const tally = (options?: StateOptions<{ items: readonly string[] }>) =>
  defineState(
    shoppingCart,
    (): { items: readonly string[] } => ({ items: [] }),
    { ProductItemAdded: ({ items }, { payload }) => ({ items: [...items, payload.productItem.name] }) },
    options,
  );

test('a stream has a state, also with a snapshot taken on the way', async () => {
  await givenStream(shoppingCart, opened, added, added).thenState(tally(), { items: ['Mug', 'Mug'] });
  await givenStream(shoppingCart, added, added).thenState(tally({ snapshotEvery: 1 }), { items: ['Mug', 'Mug'] });
  await expect(givenStream(shoppingCart, added).thenState(tally(), { items: ['Cup'] })).rejects.toThrow(
    /'Mug'[\s\S]*'Cup'/,
  );
  const forgetful = tally({ snapshotEvery: 1, encode: () => ({}), decode: () => ({ items: [] }) });
  await expect(givenStream(shoppingCart, added).thenState(forgetful, { items: ['Mug'] })).rejects.toThrow(
    'The state differs if a snapshot of it was taken after event 1.',
  );
  const unfit = defineState(shoppingCart, () => ({ at: new Date(0) }), {}, { snapshotEvery: 1 });
  await expect(givenStream(shoppingCart).thenState(unfit, { at: new Date(0) })).rejects.toMatchObject({
    code: 'INVALID_STATE',
  });
});

test('a command can be checked by the state after it, too', async () => {
  const addTo = defineCommand({
    name: 'addTo',
    input: z.object({ cartId: z.string() }),
    state: tally(),
    stream: ({ cartId }) => cartId,
    decide: () => added,
  });
  await givenStream(shoppingCart, added)
    .when(addTo, { cartId: 'c1' })
    .thenState({ items: ['Mug', 'Mug'] });
});

test('code that mutates its arguments fails, and is named', async () => {
  const careless = defineState(shoppingCart, () => ({ items: [] as string[] }), {
    ProductItemAdded(state) {
      state.items.push('one more');
      return state;
    },
  });
  await expect(givenStream(shoppingCart, added).thenState(careless, { items: ['one more'] })).rejects.toThrow(
    "The handler of 'ProductItemAdded' in a state of shopping_cart changed its state or its event in place",
  );
  const grabbing = defineCommand({
    name: 'grabbing',
    input: z.object({ cartId: z.string() }),
    state: tally(),
    stream: ({ cartId }) => cartId,
    decide(input) {
      Object.assign(input, { cartId: 'another' });
      return added;
    },
  });
  await expect(givenStream(shoppingCart).when(grabbing, { cartId: 'c1' }).thenEvents(added)).rejects.toThrow(
    "'decide' of 'grabbing' changed its state or its input in place",
  );
});

test('an unexpected rejection fails with its reason; an expected one can be inspected', async () => {
  const picky = defineCommand({
    name: 'picky',
    input: z.object({ cartId: z.string() }),
    events: shoppingCart,
    stream: ({ cartId }) => cartId,
    decide(): [] {
      throw new CommandRejected('Too late.', { since: 'noon' });
    },
  });
  const decision = givenStream(shoppingCart).when(picky, { cartId: 'c1' });
  await expect(decision.thenNothing()).rejects.toThrow(
    "Expected 'picky' to be accepted, but it was rejected: Too late.",
  );
  await decision.thenRejected('Too late.', { since: 'noon' });
  await expect(decision.thenRejected('Too late.', { since: 'dawn' })).rejects.toThrow(/noon[\s\S]*dawn/);
});

test('a projection that remembers undone events is not replayable', async () => {
  const seen = new Set<string>();
  const remembering = defineProjection({
    name: 'remembering',
    version: 1,
    events: shoppingCart,
    table: { cartId: t.text().primaryKey(), first: t.boolean() },
    key: (event) => event.streamId,
    evolve: {
      ShoppingCartOpened(_, event) {
        const first = !seen.has(event.id);
        if (event.position === 2n) seen.add(event.id);
        return { first };
      },
    },
  });
  const projected = givenEvents(
    { family: shoppingCart, streamId: 'c1', events: [opened] },
    { family: shoppingCart, streamId: 'c2', events: [opened] },
  ).projectedBy(remembering);
  await expect(projected.thenReplayable()).rejects.toThrow(/remembering@1 returns other rows[\s\S]*first/);
});

test('the log in memory does the same work for every append and every page, however long it is', async () => {
  let reads = 0;
  const counted = Object.defineProperties(
    {},
    {
      ...Object.getOwnPropertyDescriptors(shoppingCart),
      name: {
        get() {
          reads++;
          return shoppingCart.name;
        },
      },
    },
  ) as typeof shoppingCart; // the same, except that it counts
  const log = createInMemoryLog();
  const appendHundred = async () => {
    reads = 0;
    for (let index = 0; index < 100; index++)
      await log.append({ family: counted, streamId: index % 2 === 0 ? 'hot' : `cart ${index}`, events: [added] });
    return reads;
  };
  const first = await appendHundred();
  expect([await appendHundred(), await appendHundred()]).toEqual([first, first]);

  let compared = 0;
  const filter = [
    {
      get family() {
        compared++;
        return shoppingCart.name;
      },
      types: ['ProductItemAdded'],
    },
  ];
  let pages = 0;
  let after = beginning;
  for (let end = false; !end; pages++) {
    const page = await log.source.read(after, filter, 10);
    end = page.upTo === page.horizon;
    after = page.upTo;
  }
  expect([pages, compared]).toEqual([30, 300]);
  expect(log.stream(shoppingCart, 'hot')).toHaveLength(150);
});

test('given events may have payloads in older shapes, and what upcasters return is checked', async () => {
  const ledger = (upcaster: (payload: { euros: number }) => { cents: number }) =>
    defineEvents('ledger', { Paid: z.object({ cents: z.int() }) }, { upcasters: { Paid: [upcaster] } });
  const totals = (events: ReturnType<typeof ledger>) =>
    defineProjection({
      name: 'totals',
      version: 1,
      events,
      table: { id: t.text().primaryKey(), cents: t.integer() },
      key: (event) => event.streamId,
      evolve: { Paid: (row, { payload }) => ({ cents: (row?.cents ?? 0) + payload.cents }) },
    });
  const state = (family: ReturnType<typeof ledger>) =>
    defineState(family, () => ({ cents: 0 }), { Paid: ({ cents }, { payload }) => ({ cents: cents + payload.cents }) });
  const old = { type: 'Paid', payload: { euros: 2 }, payloadVersion: 1 } as const;
  const current = { type: 'Paid', payload: { cents: 5 } } as const;

  const family = ledger(({ euros }) => ({ cents: euros * 100 }));
  const projected = givenEvents({ family, streamId: 'a', events: [old, current] }).projectedBy(totals(family));
  await projected.thenRows({ id: 'a', cents: 205 });
  await projected.thenReplayable();
  await givenStream(family, old, current).thenState(state(family), { cents: 205 });

  const wrong = ledger(({ euros }) => ({ cents: euros / 3 }));
  const misread = givenEvents({ family: wrong, streamId: 'a', events: [old] }).projectedBy(totals(wrong));
  await expect(misread.rows()).rejects.toThrow(
    /^totals@1: upcast of 'Paid' failed at .* does not match the schema: cents: /,
  );
  await expect(givenStream(wrong, old).thenState(state(wrong), { cents: 0 })).rejects.toThrow(
    "What the upcasters of 'Paid' return does not match its schema: cents: ",
  );

  const failing = ledger(() => {
    throw new Error('boom');
  });
  await expect(
    givenEvents({ family: failing, streamId: 'a', events: [old] })
      .projectedBy(totals(failing))
      .thenReplayable(),
  ).rejects.toThrow("totals@1: upcast of 'Paid' failed at position 1 (stream 'a', event 1): boom");
  const former = defineEvents('ledger', family.schemas, {
    types: { Paid: { was: ['Charged'] } },
    upcasters: { Paid: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] },
  });
  const renamed = { family: former, streamId: 'a', events: [{ ...old, type: 'Charged', payloadVersion: 3 }] };
  await expect(givenEvents(renamed).projectedBy(totals(former)).rows()).rejects.toThrow(
    "ledger does not define an event type 'Charged'. Its name is 'Paid' now.",
  );
  const newer = { type: 'Paid', payload: { total: '2.00' }, payloadVersion: 3 } as const;
  await expect(givenStream(family, newer).thenState(state(family), { cents: 0 })).rejects.toMatchObject({
    code: 'PAYLOAD_VERSION_UNKNOWN',
  });
});
