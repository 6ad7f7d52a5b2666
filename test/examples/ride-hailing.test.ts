import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import app from '../../examples/ride-hailing/app.ts';
import { rideOrder } from '../../examples/ride-hailing/events.ts';
import { rideOrderState } from '../../examples/ride-hailing/order.ts';
import { orderRelay } from '../../examples/ride-hailing/relay.ts';
import { createRefold, type Refold } from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { untilActive } from '../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

interface Message {
  readonly id: string;
  readonly subject: string;
  readonly key: string;
  readonly body: { readonly orderId: string; readonly revision: number; readonly status: string };
}

const published: Message[] = [];
const broker = {
  async publish(messages: readonly { id: string; subject: string; key: string; body: string }[]) {
    for (const { id, subject, key, body } of messages) published.push({ id, subject, key, body: JSON.parse(body) });
  },
};

let database: TestDatabase;
let db: Database;
/** The first gateway; it also maintains what asynchronous read models and the relay need. */
let one: Refold;
let other: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  const config = {
    ...app,
    development: false,
    reactors: [orderRelay(broker)],
    database: { ...app.database, url: database.url },
    gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
  };
  const logger = pino({ level: process.env.LOG ?? 'silent' });
  one = await createRefold(config, { name: 'gateway-1', logger });
  other = await createRefold(config, { name: 'gateway-2', role: 'gateway', logger });
  for (const { id } of app.projections) await untilActive(one, id);
  for (const gateway of [one, other])
    await until(
      async () => !('errors' in (await post(gateway, '{ rideOrders { totalCount } drivers { totalCount } }'))),
    );
});
afterAll(async () => {
  await other.stop();
  await one.stop();
  await db.close();
  await database.drop();
});

async function post({ url }: Refold, query: string) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

const requests = {
  placeOrder: (orderId: string) => `placeOrder(input: {
    orderId: "${orderId}", riderId: "ada", price: "23.50"
    route: [{ zoneId: "132", address: "JFK, Terminal 4" }, { zoneId: "161", address: "5 E 47th St" }]
  })`,
  adjustPrice: (orderId: string, price = '25.00') => `adjustPrice(input: { orderId: "${orderId}", price: "${price}" })`,
  acceptOrder: (orderId: string) => `acceptOrder(input: { orderId: "${orderId}", driverId: "bo" })`,
  completeOrder: (orderId: string) => `completeOrder(input: { orderId: "${orderId}" })`,
  cancelOrder: (orderId: string) => `cancelOrder(input: { orderId: "${orderId}" })`,
};
type Request = keyof typeof requests;

const order = 'rideOrder { status price driverId revision }';

async function send(gateway: Refold, request: string) {
  const { data, errors } = await post(gateway, `mutation { sent: ${request} { position ${order} } }`);
  expect(errors).toBeUndefined();
  return data.sent;
}

async function read(gateway: Refold, orderId: string) {
  const { data } = await post(gateway, `{ rideOrder(orderId: "${orderId}") { status price driverId revision } }`);
  return data.rideOrder;
}

test('an order is placed, its price adjusted, accepted and completed; each gateway sees at once what the other one did', async () => {
  const steps = [
    [requests.placeOrder('o1'), { status: 'Waiting', price: '23.50', driverId: null, revision: 1 }],
    [requests.adjustPrice('o1'), { status: 'Waiting', price: '25.00', driverId: null, revision: 2 }],
    [requests.acceptOrder('o1'), { status: 'Accepted', price: '25.00', driverId: 'bo', revision: 3 }],
    [requests.completeOrder('o1'), { status: 'Completed', price: '25.00', driverId: 'bo', revision: 4 }],
  ] as const;
  let [writing, reading] = [one, other];
  for (const [request, expected] of steps) {
    expect((await send(writing, request)).rideOrder).toEqual(expected);
    expect(await read(reading, 'o1')).toEqual(expected);
    [writing, reading] = [reading, writing];
  }
  const { data } = await post(one, '{ rideOrder(orderId: "o1") { riderId route { zoneId address } } }');
  expect(data.rideOrder).toEqual({
    riderId: 'ada',
    route: [
      { zoneId: '132', address: 'JFK, Terminal 4' },
      { zoneId: '161', address: '5 E 47th St' },
    ],
  });
});

test('commands of one operation each return the order as they left it', async () => {
  const { data } = await post(
    other,
    `mutation {
      placed: ${requests.placeOrder('o6')} { ${order} }
      adjusted: ${requests.adjustPrice('o6')} { ${order} }
      accepted: ${requests.acceptOrder('o6')} { ${order} query { rideOrder(orderId: "o6") { revision } } }
    }`,
  );
  expect(data).toEqual({
    placed: { rideOrder: { status: 'Waiting', price: '23.50', driverId: null, revision: 1 } },
    adjusted: { rideOrder: { status: 'Waiting', price: '25.00', driverId: null, revision: 2 } },
    accepted: {
      rideOrder: { status: 'Accepted', price: '25.00', driverId: 'bo', revision: 3 },
      query: { rideOrder: { revision: 3 } },
    },
  });
});

test('an accepted order can be cancelled, and counts for nobody', async () => {
  await send(other, requests.placeOrder('o2'));
  await send(one, requests.acceptOrder('o2'));
  expect((await send(other, requests.cancelOrder('o2'))).rideOrder.status).toBe('Cancelled');
  const { data } = await post(
    one,
    `mutation { cancel: ${requests.placeOrder('o3')} { query { driver(driverId: "bo") { rides earned } } } }`,
  );
  expect(data.cancel.query.driver).toEqual({ rides: 1, earned: '25.00' });
});

/** How an order comes to a status, and the requests that it accepts there. */
const statuses: Record<string, { readonly by: readonly Request[]; readonly accepts: readonly Request[] }> = {
  None: { by: [], accepts: ['placeOrder'] },
  Waiting: { by: ['placeOrder'], accepts: ['adjustPrice', 'acceptOrder', 'cancelOrder'] },
  Accepted: { by: ['placeOrder', 'acceptOrder'], accepts: ['completeOrder', 'cancelOrder'] },
  Completed: { by: ['placeOrder', 'acceptOrder', 'completeOrder'], accepts: [] },
  Cancelled: { by: ['placeOrder', 'cancelOrder'], accepts: [] },
};

test.each(
  Object.keys(statuses),
)('an order that is %s accepts only what may follow, and the rejection names its status', async (status) => {
  const { by, accepts } = statuses[status] ?? expect.fail();
  for (const request of Object.keys(requests) as Request[]) {
    const orderId = `${status}-${request}`;
    for (const before of by) await send(one, requests[before](orderId));
    const { data, errors } = await post(other, `mutation { sent: ${requests[request](orderId)} { streamVersion } }`);
    if (accepts.includes(request)) {
      expect({ request, data, errors }).toEqual({ request, data: { sent: { streamVersion: by.length + 1 } } });
      continue;
    }
    expect({ request, data, errors }).toMatchObject({
      request,
      data: { sent: null },
      errors: [{ extensions: { code: 'COMMAND_REJECTED', details: { status } } }],
    });
    expect((await read(one, orderId))?.revision ?? 0).toBe(by.length);
  }
});

test('any revision of an order can be read: by its events, by position, and by snapshots of each tenth event', async () => {
  await send(one, requests.placeOrder('o4'));
  const positions: string[] = [];
  for (let cents = 1; cents <= 34; cents++)
    positions.push((await send(one, requests.adjustPrice('o4', `20.${String(cents).padStart(2, '0')}`))).position);
  const { data } = await post(
    other,
    `{
    rideOrderEvents(orderId: "o4", first: 50) { nodes { type row { revision price } } }
    then: rideOrder(orderId: "o4", asOf: { position: "${positions[16]}" }) { revision price }
  }`,
  );
  expect(data.then).toEqual({ revision: 18, price: '20.17' });
  const prices = ['23.50', ...positions.map((_, index) => `20.${String(index + 1).padStart(2, '0')}`)];
  expect(data.rideOrderEvents.nodes).toEqual(
    prices.map((price, index) => ({
      type: index === 0 ? 'OrderPlaced' : 'OrderPriceAdjusted',
      row: { revision: index + 1, price },
    })),
  );
  const kept = () =>
    db.query<{ at: number }>({
      text: `select stream_position::int as at from refold.stream_snapshots where stream_id = 'o4' order by 1`,
    });
  await until(async () => (await kept()).length === 2);
  const [first = expect.fail(), second = expect.fail()] = (await kept()).map(({ at }) => at);
  expect([second - first, first]).toEqual([10, expect.any(Number)]);
  for (const [index, price] of prices.entries()) {
    const { state, snapshotVersion } = await one.log.stateOf(rideOrderState, 'o4', { at: index + 1 });
    expect({ state, snapshotVersion }).toMatchObject({
      state: { status: 'Waiting', price },
      snapshotVersion: index + 1 < first ? 0 : index + 1 < second ? first : second,
    });
  }
});

test('others get each order as it was after each of its events, in their order', async () => {
  const head = await one.log.head();
  await until(async () => ((await one.reactors.status())[0]?.position ?? 0n) >= head);
  expect(published.filter(({ body }) => body.orderId === 'o1')).toMatchObject([
    { subject: 'order.changed', key: 'ride_order/o1', body: { revision: 1, status: 'Waiting', price: '23.50' } },
    { body: { revision: 2, status: 'Waiting', price: '25.00' } },
    { body: { revision: 3, status: 'Accepted', price: '25.00', driverId: 'bo' } },
    { body: { revision: 4, status: 'Completed', price: '25.00', driverId: 'bo' } },
  ]);
  const prices = published.filter(({ body }) => body.orderId === 'o4').map(({ body }) => body);
  expect(prices.map(({ revision }) => revision)).toEqual(Array.from({ length: 35 }, (_, index) => index + 1));
  expect(new Set(published.map(({ id }) => id)).size).toBe(published.length);
});

test('a ride counts in the zone of its pickup, in the hour of the city', async () => {
  await send(one, requests.placeOrder('o5'));
  await send(other, requests.acceptOrder('o5'));
  const query = `mutation { done: ${requests.completeOrder('o5')} { zoneHour { zoneId day hour } driver { rides } } }`;
  const { data } = await post(one, query);
  const { totalCount } = (await post(one, '{ rideOrders(where: { status: { eq: Completed } }) { totalCount } }')).data
    .rideOrders;
  const { pickedUpAt, recordedAt } = await pickupOf('o5');
  expect(data.done).toEqual({
    zoneHour: { zoneId: '132', day: pickedUpAt.slice(0, 10), hour: Number(pickedUpAt.slice(11, 13)) },
    driver: { rides: totalCount },
  });
  // New York is four or five hours behind UTC. The event is recorded within moments of the command's time.
  expect([240, 300]).toContain(Math.round((recordedAt - Date.parse(`${pickedUpAt}Z`)) / 600_000) * 10);
});

async function pickupOf(orderId: string): Promise<{ readonly pickedUpAt: string; readonly recordedAt: number }> {
  for await (const event of one.log.readStream(rideOrder, orderId))
    if (event.type === 'OrderAccepted')
      return { pickedUpAt: event.payload.pickedUpAt, recordedAt: Date.parse(event.recordedAt) };
  return expect.fail(`nobody accepted ${orderId}`);
}
