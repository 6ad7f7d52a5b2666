import { afterAll, beforeAll, expect, test } from 'vitest';
import { rideOrder } from '../../examples/ride-hailing/events.ts';
import { rideOrderState } from '../../examples/ride-hailing/order.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { seeded } from '../support/account-traffic.ts';
import { heldMessages, startNats } from '../support/jetstream.ts';
import type { NatsServer } from '../support/nats-server.ts';
import { seed } from '../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
let nats: NatsServer;
const processes = createWorkerProcesses('system/ride-process.ts');

beforeAll(async () => {
  nats = await startNats();
  process.env.NATS_URL = nats.address; // the application of the processes reads it
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [rideOrder]);
});
afterAll(async () => {
  delete process.env.NATS_URL;
  await processes.killAll();
  await nats.remove();
  await db.close();
  await database.drop();
});

const relay = async () => (await readReactors(db)).find(({ name }) => name === 'order_relay');

async function relayed(share: (head: bigint) => bigint): Promise<void> {
  const target = share(await log.head());
  await until(async () => ((await relay())?.checkpoint ?? 0n) >= target);
}

/** One random request after the other, each to a random gateway. Rejections are part of the traffic. */
function createTraffic(gateways: readonly string[], random: () => number) {
  const placed = new Set<string>();
  let requests = 0;
  let rejections = 0;
  const below = (count: number) => Math.floor(random() * count);
  const input = (orderId: string) => {
    const draw = random();
    if (!placed.has(orderId) || draw < 0.05)
      return `placeOrder(input: { orderId: "${orderId}", riderId: "ada", price: "10.00", route: [{ zoneId: "1" }, { zoneId: "2" }] })`;
    // Never the price that the order has: such a command writes nothing.
    if (draw < 0.7) return `adjustPrice(input: { orderId: "${orderId}", price: "${10 + (requests % 9_000)}.50" })`;
    if (draw < 0.85) return `acceptOrder(input: { orderId: "${orderId}", driverId: "driver-${below(5)}" })`;
    return `${draw < 0.95 ? 'completeOrder' : 'cancelOrder'}(input: { orderId: "${orderId}" })`;
  };
  return {
    get rejections() {
      return rejections;
    },
    async request(): Promise<void> {
      // Each order gets some ten requests, among those to its neighbors.
      const number = Math.floor(requests++ / 10) + below(20);
      const orderId = `order ${number}.>*`; // characters that a subject cannot hold
      const query = `mutation { sent: ${input(orderId)} { streamVersion rideOrder { revision } } }`;
      const url = `${gateways[below(gateways.length)]}/graphql`;
      const headers = { 'content-type': 'application/json' };
      const { data, errors } = await (
        await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) })
      ).json();
      if (errors) {
        expect(['COMMAND_REJECTED', 'CONCURRENCY_CONFLICT']).toContain(errors[0].extensions.code);
        rejections += 1;
        return;
      }
      placed.add(orderId);
      // The inline read model has the command's event, or a later one.
      expect(data.sent.rideOrder.revision).toBeGreaterThanOrEqual(data.sent.streamVersion);
    },
  };
}

test('of two relays one is killed at random, again and again: each order is published as it was after each event, in order, and nothing is lost', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  let started = 0;
  const startRelay = () => processes.start({ url: database.url, owner: `relay-${++started}`, role: 'worker' });
  const alive: WorkerProcess[] = [];
  alive.push(await startRelay(), await startRelay());
  const gateways = await Promise.all(
    ['gateway-1', 'gateway-2'].map((owner) => processes.start({ url: database.url, owner, role: 'gateway' })),
  );
  const traffic = createTraffic(
    gateways.map(({ said }) => said[0]?.msg ?? expect.fail('a gateway without a URL')),
    random,
  );
  let sending = true;
  const clients = Promise.all(
    Array.from({ length: 6 }, async () => {
      while (sending) {
        await traffic.request();
        // The relay is never far behind: otherwise the machine's load decides how long the test takes.
        await until(async () => !sending || (await log.head()) - ((await relay())?.checkpoint ?? 0n) < 300n);
      }
    }),
  );
  const killed = { owner: 0, other: 0 };
  for (let round = 0; round < 4 || killed.owner < 2; round++) {
    await relayed((head) => head + BigInt(Math.floor(random() * 40)));
    const [victim = expect.fail()] = alive.splice(Math.floor(random() * 2), 1);
    killed[(await relay())?.owner === victim.owner ? 'owner' : 'other'] += 1;
    console.info(`${victim.owner} is killed at position ${(await relay())?.checkpoint}`);
    await victim.end('SIGKILL');
    alive.push(await startRelay());
  }
  sending = false;
  await clients;
  await relayed((head) => head);
  console.info(`killed ${killed.owner} owners and ${killed.other} others; ${traffic.rejections} rejections`);

  // Receivers drop what they got before, by the message's id.
  const received = new Map<string, { subject: string; key: string; body: Record<string, unknown> }>();
  for (const { subject, body, header } of await heldMessages(nats.address, 'rides')) {
    const id = header('Nats-Msg-Id');
    if (!received.has(id)) received.set(id, { subject, key: header('refold-stream'), body: JSON.parse(body) });
  }
  const byOrder = Map.groupBy(received.values(), ({ body }) => String(body.orderId));
  let events = 0;
  for (const [orderId, messages] of byOrder) {
    const revisions = [];
    for await (const { id, streamPosition } of log.readStream(rideOrder, orderId)) {
      const { state } = await log.stateOf(rideOrderState, orderId, { at: streamPosition });
      revisions.push({ orderId, revision: streamPosition, ...state });
      expect(received.has(id)).toBe(true);
      events += 1;
    }
    expect(
      messages.map(({ body }) => body),
      `${orderId}, seed ${seed}`,
    ).toEqual(revisions);
  }
  const [{ count } = expect.fail()] = await db.query<{ count: bigint }>({
    text: `select count(*) from refold.events`,
  });
  expect({ events, received: received.size }).toEqual({ events: Number(count), received: Number(count) });
  expect(new Set([...received.values()].map(({ subject }) => subject))).toEqual(new Set(['rides.order.changed']));
}, 1_200_000); // slow on a busy machine; only the result matters
