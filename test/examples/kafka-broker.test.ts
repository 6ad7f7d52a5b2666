import { Kafka, logLevel } from 'kafkajs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Broker, BrokerMessage } from '../../examples/outbox-relay/broker.ts';
import { kafkaBroker } from '../../examples/outbox-relay/kafka-broker.ts';
import type { CrashPoint } from '../support/kafka-partition.ts';
import { createKafkaServer, type KafkaServer } from '../support/kafka-server.ts';
import { crc32c } from '../support/kafka-wire.ts';
import { until } from '../support/until.ts';

let server: KafkaServer;
let broker: Broker;

beforeEach(async () => {
  server = await createKafkaServer();
  await server.start();
  broker = kafkaBroker({ brokers: [server.address], topic: 'orders' });
});
afterEach(async () => {
  await broker.close();
  await server.remove();
  expect(server.violations).toEqual([]);
});

const message = (stream: number, number: number, body = '{}'): BrokerMessage => ({
  id: `${stream}/${number}`,
  subject: 'order.OrderPlaced',
  key: `order/${stream}`,
  body,
  headers: { 'refold-stream-position': String(number) },
});
const stored = () => server.partitions('orders').flat();
const ids = () => stored().map(({ headers }) => headers.id ?? '');

/** Publishes as the relay does: streams at the same time, the messages of one stream one after the other. */
async function publish(streams: number, each: number): Promise<void> {
  await Promise.all(
    Array.from({ length: streams }, async (_, stream) => {
      for (let number = 1; number <= each; number++) await broker.publish([message(stream, number)]);
    }),
  );
}

/** What {@link publish} must have stored: each message once, each stream in order and in one partition. */
function expectStored(streams: number, each: number): void {
  expect(ids().toSorted()).toEqual(
    Array.from(
      { length: streams * each },
      (_, index) => `${index % streams}/${Math.floor(index / streams) + 1}`,
    ).toSorted(),
  );
  const partitionsOfKey = new Map<string, Set<number>>();
  for (const [index, records] of server.partitions('orders').entries())
    for (const [key, own] of Map.groupBy(records, (record) => record.key)) {
      partitionsOfKey.set(key, (partitionsOfKey.get(key) ?? new Set()).add(index));
      const numbers = own.map(({ headers }) => Number(headers['refold-stream-position']));
      expect(numbers, key).toEqual(numbers.toSorted((a, b) => a - b));
    }
  expect([...partitionsOfKey.values()].every(({ size }) => size === 1)).toBe(true);
}

test('the checksum of the server in these tests is CRC-32C', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283); // the check value of its specification
});

test('messages are stored with key, body, id and headers', async () => {
  await broker.publish([message(1, 1, '{"total":"1.00"}')]);
  expect(stored()).toEqual([
    {
      offset: 0n,
      key: 'order/1',
      value: '{"total":"1.00"}',
      headers: { id: '1/1', subject: 'order.OrderPlaced', 'refold-stream-position': '1' },
    },
  ]);
});

test.for<CrashPoint>([
  'before',
  'during',
  'after',
])('a broker that breaks down %s it stores messages has each one once after a restart, each stream in order', async (point) => {
  const published = publish(20, 10);
  for (let restart = 1; restart <= 3; restart++) {
    await server.crash(point);
    await server.start();
  }
  await published;
  expectStored(20, 10);
});

test('while the broker is away, a message that is published again is kept once, and stored when the broker is back', async () => {
  await publish(1, 1);
  await server.end();
  const attempts = Array.from({ length: 30 }, (_, attempt) => broker.publish([message(attempt % 3, 2)]));
  await server.start();
  await Promise.all(attempts);
  expect(ids().toSorted()).toEqual(['0/1', '0/2', '1/2', '2/2']);
});

test('a broker that was away from the start is connected to by a later attempt', async () => {
  await server.end();
  const attempts = Promise.allSettled([broker.publish([message(1, 1)])]);
  await server.start();
  const [first] = await attempts;
  if (first?.status === 'rejected') await broker.publish([message(1, 1)]);
  expect(ids()).toEqual(['1/1']);
});

test('a message that the broker refuses for its size fails alone, and what is sent with it and after it is stored', async () => {
  const tooLarge = message(1, 1, 'x'.repeat(1_000_001));
  const results = await Promise.allSettled([
    broker.publish([message(0, 1)]), // on its way alone, so that the next three go together
    broker.publish([message(2, 1)]),
    broker.publish([tooLarge]),
    broker.publish([message(3, 1)]),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  await broker.publish([message(4, 1)]);
  // What went to other partitions with the refused one was stored at once, and is sent again.
  expect(new Set(ids())).toEqual(new Set(['0/1', '2/1', '3/1', '4/1']));
});

test('a second process goes on with the same topic, and a consumer of kafkajs receives every message', async () => {
  await publish(10, 2);
  const second = kafkaBroker({ brokers: [server.address], topic: 'orders' });
  for (let stream = 0; stream < 10; stream++) await second.publish([message(stream, 3)]);
  await second.close();
  expectStored(10, 3);

  const received: string[] = [];
  const consumer = new Kafka({ brokers: [server.address], logLevel: logLevel.NOTHING }).consumer({
    groupId: 'warehouse',
    maxWaitTimeInMs: 50,
  });
  await consumer.connect();
  await consumer.subscribe({ topic: 'orders', fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message: { key, headers } }) => {
      received.push(`${key}: ${headers?.id}`);
    },
  });
  await until(() => received.length >= 30);
  await consumer.disconnect();
  expect(received.toSorted()).toEqual(
    stored()
      .map(({ key, headers }) => `${key}: ${headers.id}`)
      .toSorted(),
  );
});
