import { pino } from 'pino';
import { order } from '../../examples/outbox-relay/app.ts';
import { kafkaBroker } from '../../examples/outbox-relay/kafka-broker.ts';
import { outboxRelay } from '../../examples/outbox-relay/relay.ts';
import { defineConfig } from '../../src/index.ts';
import { startRuntime } from '../../src/runtime/runtime.ts';
import type { WorkerProcessOptions } from '../support/worker-processes.ts';

// The relay in its own process, for tests that kill it: KAFKA_ADDRESS=… node kafka-relay-process.ts OPTIONS
const { url, owner }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const broker = kafkaBroker({ brokers: [process.env.KAFKA_ADDRESS ?? ''], topic: 'orders' });
const runtime = await startRuntime({
  config: defineConfig({
    reactors: [outboxRelay({ name: 'order_relay', events: order, broker })],
    runtime: { polling: { min: 20, max: 100 } },
  }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'error' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
