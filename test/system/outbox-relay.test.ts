import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { order } from '../../examples/outbox-relay/app.ts';
import { beginning, globalPosition, type RecordedEvent } from '../../src/index.ts';
import { createReactorOperations } from '../../src/runtime/reactors/reactor-operations.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { seeded } from '../support/account-traffic.ts';
import { heldMessages, startNats } from '../support/jetstream.ts';
import type { NatsServer } from '../support/nats-server.ts';
import { seed } from '../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses } from '../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
let nats: NatsServer;
const relays = createWorkerProcesses('system/relay-process.ts');

beforeAll(async () => {
  nats = await startNats();
  process.env.NATS_URL = nats.address;
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [order]);
});
afterAll(async () => {
  delete process.env.NATS_URL;
  await relays.killAll();
  await nats.remove();
  await db.close();
  await database.drop();
});

interface Received {
  readonly id: string;
  readonly stream: string;
  readonly streamPosition: number;
}

/** The messages of JetStream, in order. */
async function held(): Promise<Received[]> {
  const messages = await heldMessages(nats.address, 'shop');
  return messages.map(({ header }) => asReceived({ headers: { get: header } }));
}

function asReceived({ headers }: { headers?: { get(name: string): string } | undefined }): Received {
  return {
    id: headers?.get('Nats-Msg-Id') ?? '',
    stream: headers?.get('refold-stream') ?? '',
    streamPosition: Number(headers?.get('refold-stream-position')),
  };
}

async function relayedAll(): Promise<void> {
  const head = await log.head();
  await until(async () => ((await readReactors(db))[0]?.checkpoint ?? 0n) >= head);
}

async function allEvents(): Promise<readonly RecordedEvent[]> {
  return (await log.readAll({ after: beginning, upTo: await log.horizon(), limit: 1_000_000 })).events;
}

test('a killed relay and a stopped broker lose no message, keep each stream in order, and JetStream holds each message once', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  let appending = true;
  const traffic = (async () => {
    while (appending) {
      await Promise.all(
        Array.from({ length: 20 }, () =>
          log.append({
            family: order,
            streamId: `order ${Math.floor(random() * 30)}.>*`, // characters that a subject cannot hold
            events: [{ type: 'OrderPlaced', payload: { customer: 'ann', total: '1.00' } }],
          }),
        ),
      );
      const head = await log.head();
      await until(async () => !appending || head - ((await readReactors(db))[0]?.checkpoint ?? 0n) < 400n);
    }
  })();
  const checkpoint = async () => (await readReactors(db))[0]?.checkpoint ?? 0n;
  for (let round = 1; round <= 6; round++) {
    const relay = await relays.start({ url: database.url, owner: `relay-${round}` });
    if (round % 2 === 0) {
      await nats.end(round % 4 === 0 ? 'SIGKILL' : 'SIGTERM');
      await nats.start();
    }
    const target = (await checkpoint()) + BigInt(Math.floor(random() * 300));
    await until(async () => (await checkpoint()) > target);
    await relay.end('SIGKILL');
  }
  const last = await relays.start({ url: database.url, owner: 'relay-last' });
  appending = false;
  await traffic;
  await relayedAll();

  const connection = await connect({ servers: nats.address });
  const events = await allEvents();
  const received = await held();
  expect(received.map(({ id }) => id).toSorted(), `seed ${seed}`).toEqual(events.map(({ id }) => id).toSorted());
  for (const [stream, messages] of Map.groupBy(received, (message) => message.stream)) {
    const positions = messages.map(({ streamPosition }) => streamPosition);
    expect(positions, `${stream}, seed ${seed}`).toEqual(positions.map((_, index) => index + 1));
  }

  // Sent again from the beginning at an operator's request: with the same ids, so JetStream keeps no message twice.
  const sentAgain: Received[] = [];
  const subscription = connection.subscribe('shop.>');
  const listening = (async () => {
    for await (const message of subscription) sentAgain.push(asReceived(message));
  })();
  await connection.flush();
  await createReactorOperations(db, log).rewind('order_relay', globalPosition('0'), {
    actor: 'ann',
    reason: 'once more',
  });
  await relayedAll();
  await until(() => new Set(sentAgain.map(({ id }) => id)).size >= events.length);
  subscription.unsubscribe();
  await listening;
  expect(new Set(sentAgain.map(({ id }) => id))).toEqual(new Set(events.map(({ id }) => id)));
  expect(await held()).toEqual(received);
  await connection.close();
  await last.end('SIGTERM');
}, 600_000); // slow on a busy machine; only the result matters
