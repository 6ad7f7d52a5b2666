import { afterAll, beforeAll, expect, test } from 'vitest';
import { order } from '../../examples/outbox-relay/app.ts';
import { beginning, globalPosition } from '../../src/index.ts';
import { createReactorOperations } from '../../src/runtime/reactors/reactor-operations.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { seeded } from '../support/account-traffic.ts';
import { createKafkaServer, type KafkaServer } from '../support/kafka-server.ts';
import { seed } from '../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses } from '../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
let kafka: KafkaServer;
const relays = createWorkerProcesses('examples/kafka-relay-process.ts');

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [order]);
  kafka = await createKafkaServer();
  await kafka.start();
  process.env.KAFKA_ADDRESS = kafka.address;
});
afterAll(async () => {
  await relays.killAll();
  await kafka.remove();
  await db.close();
  await database.drop();
});

const checkpoint = async () => (await readReactors(db))[0]?.checkpoint ?? 0n;

async function relayedAll(): Promise<void> {
  const head = await log.head();
  await until(async () => (await checkpoint()) >= head);
}

async function place(streamId: string): Promise<void> {
  const events = [{ type: 'OrderPlaced', payload: { customer: 'ann', total: '1.00' } }] as const;
  await log.append({ family: order, streamId, events });
}

/** The ids of all events in the order of the log. */
async function logged(): Promise<string[]> {
  const { events } = await log.readAll({ after: beginning, upTo: await log.horizon(), limit: 1_000_000 });
  return events.map(({ id }) => id);
}

/** The messages of each stream without repetitions, as a receiver keeps them: by the first copy of each id. */
function receivedOf(stream: string): { streamPosition: number }[] {
  const records = kafka
    .partitions('orders')
    .flat()
    .filter(({ headers }) => headers['refold-stream'] === encodeURIComponent(stream));
  const first = new Map(records.toReversed().map((record) => [record.headers.id, record]));
  return records
    .filter((record) => first.get(record.headers.id) === record)
    .map(({ headers }) => ({ streamPosition: Number(headers['refold-stream-position']) }));
}

const storedIds = () =>
  kafka
    .partitions('orders')
    .flat()
    .map(({ headers }) => headers.id ?? '');

test('a broker that breaks down and restarts under one relay gets every event once; while it is away, the relay waits and appends go on', async () => {
  const relay = await relays.start({ url: database.url, owner: 'relay-only' });
  for (const point of ['before', 'during', 'after'] as const) {
    const down = kafka.crash(point);
    const placed = Promise.all(Array.from({ length: 30 }, (_, index) => place(`order ${index % 10}`)));
    await down;
    await placed; // the log does not need the broker
    const before = await checkpoint();
    expect(before < (await log.head())).toBe(true);
    await kafka.start();
    await relayedAll();
  }
  expect(storedIds().toSorted()).toEqual((await logged()).toSorted());
  await relay.end('SIGTERM');
});

test('killed relays and a broker that breaks down lose no event; each stream is in order by the first copy; repetitions have the same id', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  let appending = true;
  const traffic = (async () => {
    while (appending) {
      await Promise.all(Array.from({ length: 20 }, () => place(`order ${Math.floor(random() * 30)}`)));
      const head = await log.head();
      await until(async () => !appending || head - (await checkpoint()) < 400n);
    }
  })();
  const points = ['before', 'during', 'after'] as const;
  for (let round = 0; round < 4; round++) {
    const relay = await relays.start({ url: database.url, owner: `relay-${round}` });
    if (round % 2 === 1) {
      await kafka.crash(points[Math.floor(random() * 3)] ?? 'after');
      await kafka.start();
    }
    const target = (await checkpoint()) + BigInt(Math.floor(random() * 200));
    await until(async () => (await checkpoint()) > target);
    await relay.end('SIGKILL');
  }
  const last = await relays.start({ url: database.url, owner: 'relay-last' });
  appending = false;
  await traffic;
  await relayedAll();

  expect(new Set(storedIds())).toEqual(new Set(await logged()));
  for (let index = 0; index < 30; index++) {
    const positions = receivedOf(`order ${index}`).map(({ streamPosition }) => streamPosition);
    expect(positions, `order ${index}, seed ${seed}`).toEqual(positions.map((_, at) => at + 1));
  }

  // Sent again at an operator's request: Kafka stores repetitions, and they have the same ids.
  const before = storedIds().length;
  await createReactorOperations(db, log).rewind('order_relay', globalPosition('0'), {
    actor: 'ann',
    reason: 'once more',
  });
  await relayedAll();
  const events = await logged();
  await until(() => storedIds().length >= before + events.length);
  expect(new Set(storedIds())).toEqual(new Set(events));
  expect(kafka.violations).toEqual([]);
  await last.end('SIGTERM');
}, 600_000); // slow on a busy machine; only the result matters
