/** What postgresql-event-sourcing promises, by number: event sourcing on PostgreSQL, shown by ride hailing. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  beginning,
  CommandRejected,
  defineCommand,
  defineEvents,
  defineProjection,
  defineReactor,
  defineState,
  type Refold,
  t,
} from '../../src/index.ts';
import { until } from '../support/until.ts';
import { type Application, answers, caughtUp, createApplication, live, statusOf } from './application.ts';
import { added, cart, itemCount } from './cart.ts';

const order = defineEvents('order', {
  Placed: z.object({ rider: z.string(), price: z.string(), route: z.array(z.string()) }),
  PriceAdjusted: z.object({ price: z.string() }),
  Accepted: z.object({ driver: z.string() }),
  Completed: z.object({}),
  Cancelled: z.object({}),
});

interface OrderState {
  readonly status: 'none' | 'placed' | 'accepted' | 'completed' | 'cancelled';
  readonly price: string;
}

const orderState = defineState(
  order,
  (): OrderState => ({ status: 'none', price: '0.00' }),
  {
    Placed: (_, { payload: { price } }) => ({ status: 'placed', price }),
    PriceAdjusted: (state, { payload: { price } }) => ({ ...state, price }),
    Accepted: (state) => ({ ...state, status: 'accepted' }),
    Completed: (state) => ({ ...state, status: 'completed' }),
    Cancelled: (state) => ({ ...state, status: 'cancelled' }),
  },
  { snapshotEvery: 10 },
);

type NextEvent = (input: { readonly price?: string | undefined; readonly driver?: string | undefined }) => {
  readonly type: 'PriceAdjusted' | 'Accepted' | 'Completed' | 'Cancelled';
  readonly payload: object;
};

/** A command on an order that must be in one of these states. */
const onOrder = (name: string, allowed: readonly OrderState['status'][], next: NextEvent) =>
  defineCommand({
    name,
    input: z.object({ orderId: z.string(), price: z.string().optional(), driver: z.string().optional() }),
    state: orderState,
    stream: ({ orderId }) => orderId,
    decide(input, { status }) {
      if (!allowed.includes(status)) throw new CommandRejected(`An order that is ${status} can't be changed so.`);
      return next(input) as never; // of these types, with the payloads below
    },
  });

const place = defineCommand({
  name: 'placeOrder',
  input: z.object({ orderId: z.string(), rider: z.string(), price: z.string(), route: z.array(z.string()) }),
  state: orderState,
  stream: ({ orderId }) => orderId,
  decide({ rider, price, route }, { status }) {
    if (status !== 'none') throw new CommandRejected('The order exists.');
    return { type: 'Placed', payload: { rider, price, route } };
  },
});
const adjustPrice = onOrder('adjustPrice', ['placed'], ({ price }) => ({ type: 'PriceAdjusted', payload: { price } }));
const accept = onOrder('acceptOrder', ['placed'], ({ driver }) => ({ type: 'Accepted', payload: { driver } }));
const complete = onOrder('completeOrder', ['accepted'], () => ({ type: 'Completed', payload: {} }));
const cancel = onOrder('cancelOrder', ['placed', 'accepted'], () => ({ type: 'Cancelled', payload: {} }));

/** The read model of orders, written with each append. */
const orders = defineProjection({
  name: 'ride_order',
  version: 1,
  events: order,
  mode: 'inline',
  table: { orderId: t.text().primaryKey(), status: t.text(), price: t.decimal(10, 2) },
  key: (event) => event.streamId,
  evolve: {
    Placed: (_, { payload: { price } }) => ({ status: 'placed', price }),
    PriceAdjusted: (row, { payload: { price } }) => row && { ...row, price },
    Accepted: (row) => row && { ...row, status: 'accepted' },
    Completed: (row) => row && { ...row, status: 'completed' },
    Cancelled: (row) => row && { ...row, status: 'cancelled' },
  },
});

interface IntegrationEvent {
  readonly id: string;
  readonly orderId: string;
  readonly status: string;
  readonly version: number;
}
const broker: IntegrationEvent[] = [];
let brokerIsDown = false;

/** Publishes the state after each event. */
const relay = defineReactor({
  name: 'relay',
  events: order,
  from: 'beginning',
  async handle({ streamId, streamPosition }, { messageId, stateAfter }) {
    if (brokerIsDown) throw new Error('the broker does not answer');
    const { status } = await stateAfter(orderState);
    broker.push({ id: messageId, orderId: streamId, status, version: streamPosition });
  },
  onError: { policy: 'stop', retries: [{ times: Number.POSITIVE_INFINITY, first: 10, maxPause: 20 }] },
});

/** On another type of stream, whose state keeps no snapshots. */
const addItem = defineCommand({
  name: 'addItem',
  input: z.object({ cartId: z.string() }),
  state: defineState(cart, () => ({ items: 0 }), {
    ItemAdded: ({ items }, { payload: { quantity } }) => ({ items: items + quantity }),
  }),
  stream: ({ cartId }) => cartId,
  decide: () => ({ type: 'ItemAdded', payload: { quantity: 1 } }),
});

const commands = [place, adjustPrice, accept, complete, cancel];
let application: Application;
let rides: Refold;

beforeAll(async () => {
  application = await createApplication();
  rides = await application.start({ events: [cart], projections: [orders], reactors: [relay], commands });
  await live(rides, 'ride_order@1');
});
afterAll(() => application.close());

const placed = (orderId: string, refold = rides) =>
  refold.execute(place, { orderId, rider: 'Ada', price: '10.00', route: ['Praça', 'Aeroporto'] });

test('1. Optimistic concurrency by the version of the stream', async () => {
  await placed('o1');
  const adjusted = (price: string) => [{ type: 'PriceAdjusted', payload: { price } } as const];
  const at = { family: order, streamId: 'o1', expectedVersion: 1 } as const;
  const both = await Promise.allSettled(
    ['11.00', '12.00'].map((price) => rides.log.append({ ...at, events: adjusted(price) })),
  );
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  await expect(rides.log.append({ ...at, events: adjusted('13.00') })).rejects.toMatchObject({
    code: 'CONCURRENCY_CONFLICT',
    expected: 1,
    actual: 2,
  });
});

test('2. Events are only inserted: the database refuses to change or remove them', async () => {
  await placed('o2');
  for (const statement of ['update refold.events set payload = payload', 'delete from refold.events'])
    await expect(application.sql(statement)).rejects.toThrow(/immutable|permission denied/);
});

test('3. A snapshot is taken of every nth event, where a state declares it', async () => {
  await placed('o3');
  for (let price = 11; price < 31; price++) {
    await rides.execute(adjustPrice, { orderId: 'o3', price: `${price}.00` });
    await rides.log.append(added('c3', 1));
  }
  await rides.execute(addItem, { cartId: 'c3' });
  const kept = () =>
    application.sql(`select distinct family from refold.stream_snapshots where stream_id in ('o3', 'c3') order by 1`);
  await until(async () => (await kept()).length > 0);
  expect(await kept()).toEqual([{ family: 'order' }]);
});

/** In another way: two snapshots of each stream are kept. An older revision is folded from the first event. */
test('4. Any revision of a stream is folded from the nearest snapshot', async () => {
  await placed('o4');
  for (let price = 11; price <= 40; price++) await rides.execute(adjustPrice, { orderId: 'o4', price: `${price}.00` });
  await until(
    async () => (await application.sql(`select from refold.stream_snapshots where stream_id = 'o4'`)).length === 2,
  );
  for (const at of [1, 2, 17, 25, 31]) {
    const { state, version } = await rides.log.stateOf(orderState, 'o4', { at });
    expect({ state, version }).toEqual({ state: { status: 'placed', price: `${at + 9}.00` }, version: at });
  }
});

test('5. A synchronous projection is written in the transaction that appends', async () => {
  await placed('o5');
  const read = () => application.sql(`select status, price from read_models.ride_order where order_id = 'o5'`);
  expect(await read()).toEqual([{ status: 'placed', price: '10.00' }]);
  await rides.execute(accept, { orderId: 'o5', driver: 'Bob' });
  expect(await read()).toEqual([{ status: 'accepted', price: '10.00' }]);
});

test('6. Each subscription has its own last position and one processor at a time; other instances take other subscriptions', async () => {
  const [one, two] = [itemCount('subscription_one'), itemCount('subscription_two')];
  const instances = ['instance 1', 'instance 2'];
  for (const name of instances) await application.start({ projections: [one, two] }, { role: 'worker', name });
  const statuses = () => Promise.all(['subscription_one@1', 'subscription_two@1'].map((id) => statusOf(rides, id)));
  await until(async () => {
    const owners = (await statuses()).map(({ owner }) => owner);
    return JSON.stringify(owners.sort()) === JSON.stringify(instances);
  });
  const { position } = await rides.log.append(added('c6', 1));
  await until(async () => (await statuses()).every((status) => status.position >= position));
});

/** In another way: not by transaction ids, but by tags of the appends that are under way, so other transactions of the cluster hold nothing up. */
test('7. Nothing is lost when the second transaction commits before the first', async () => {
  const watched = itemCount('watched_count');
  const worker = await application.start({ projections: [watched] });
  await caughtUp(worker, 'watched_count@1');
  await application.db.transaction(async (first) => {
    await rides.log.append(added('c7', 1), first);
    await rides.log.append(added('c7 too', 2));
  });
  await answers(worker, '{ one: watchedCount(cartId: "c7") { items } two: watchedCount(cartId: "c7 too") { items } }', {
    one: { items: 1 },
    two: { items: 2 },
  });
});

test('8. New events are found by polling, with an interval of choice', async () => {
  const polled = itemCount('polled_count');
  const worker = await application.start({
    projections: [polled],
    database: { notifications: false },
    runtime: { ownership: 'lease', polling: { min: 20, max: 100, step: 20 } },
  });
  await caughtUp(worker, 'polled_count@1');
  await rides.log.append(added('c8', 8));
  await answers(worker, '{ polledCount(cartId: "c8") { items } }', { polledCount: { items: 8 } });
});

test('9. LISTEN and NOTIFY wake the processors over a connection of their own, without waiting for a poll', async () => {
  const hour = 3_600_000;
  const notified = itemCount('notified_count');
  const worker = await application.start({
    projections: [notified],
    runtime: { polling: { min: hour, max: hour, jitter: 0 } },
  });
  await caughtUp(worker, 'notified_count@1');
  await rides.log.append(added('c9', 9));
  await answers(worker, '{ notifiedCount(cartId: "c9") { items } }', { notifiedCount: { items: 9 } });
});

test('10. Integration events carry the state after the event to a broker, after the commit and at least once', async () => {
  brokerIsDown = true;
  await placed('o10');
  await rides.execute(accept, { orderId: 'o10', driver: 'Bob' });
  const reactor = async () => (await rides.reactors.status()).find(({ name }) => name === 'relay');
  const { position } = await rides.execute(complete, { orderId: 'o10' });
  expect((await reactor())?.position).toBeLessThan(position);
  brokerIsDown = false;
  await until(async () => ((await reactor())?.position ?? 0n) >= position);
  const sent = broker.filter(({ orderId }) => orderId === 'o10');
  expect(sent.map(({ status, version }) => ({ status, version }))).toEqual([
    { status: 'placed', version: 1 },
    { status: 'accepted', version: 2 },
    { status: 'completed', version: 3 },
  ]);
  expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
});

test('11. A new handler starts from the first event, and an existing one resumes', async () => {
  const got: bigint[] = [];
  const handler = defineReactor({
    name: 'late_handler',
    events: order,
    from: 'beginning',
    handle: async ({ position }) => void got.push(position),
  });
  const status = async (refold: Refold) => (await refold.reactors.status()).find(({ name }) => name === 'late_handler');
  const handledAll = async (refold: Refold) => {
    const head = await refold.log.head();
    await until(async () => ((await status(refold))?.position ?? 0n) >= head);
  };
  await placed('o11');
  const before = await application.start({ reactors: [handler] });
  await handledAll(before);
  const { events } = await rides.log.readAll({
    after: beginning,
    upTo: await rides.log.horizon(),
    filter: [{ family: 'order', types: order.types }],
    limit: 10_000,
  });
  expect(got).toEqual(events.map(({ position }) => position));
  await before.stop();
  const { position } = await rides.execute(accept, { orderId: 'o11', driver: 'Bob' });
  await handledAll(await application.start({ reactors: [handler] }));
  expect(got).toEqual([...events.map((event) => event.position), position]);
});

test('12. Ride hailing: an order is placed, its price adjusted, accepted, completed or cancelled; other transitions are refused', async () => {
  await placed('o12');
  const outcome = (command: typeof accept, more: object = {}) =>
    rides.execute(command, { orderId: 'o12', ...more }).then(
      () => 'done',
      (error: unknown) => (error instanceof CommandRejected ? 'refused' : Promise.reject(error)),
    );
  expect(await outcome(complete)).toBe('refused');
  expect(await outcome(adjustPrice, { price: '12.50' })).toBe('done');
  expect(await outcome(accept, { driver: 'Bob' })).toBe('done');
  expect(await outcome(accept, { driver: 'Cat' })).toBe('refused');
  expect(await outcome(adjustPrice, { price: '9.00' })).toBe('refused');
  expect(await outcome(complete)).toBe('done');
  expect(await outcome(cancel)).toBe('refused');
  await answers(rides, '{ rideOrder(orderId: "o12") { status price } }', {
    rideOrder: { status: 'completed', price: '12.50' },
  });
  await placed('o12 too');
  await rides.execute(cancel, { orderId: 'o12 too' });
  await answers(rides, '{ rideOrder(orderId: "o12 too") { status } }', { rideOrder: { status: 'cancelled' } });
});

test('13. Two instances of the application run side by side', async () => {
  const other = await application.start({ projections: [orders], commands }, { name: 'the other instance' });
  const places = [rides, other, rides, other].map((instance, index) => placed(`o13-${index}`, instance));
  await Promise.all(places);
  await other.execute(accept, { orderId: 'o13-0', driver: 'Bob' });
  await rides.execute(cancel, { orderId: 'o13-1' });
  for (const instance of [rides, other])
    await answers(instance, '{ a: rideOrder(orderId: "o13-0") { status } b: rideOrder(orderId: "o13-1") { status } }', {
      a: { status: 'accepted' },
      b: { status: 'cancelled' },
    });
});
