import { pino } from 'pino';
import { z } from 'zod';
import { defineCommand, defineConfig, defineReactor } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';
import { order } from './waiting-order.ts';

// A worker whose handlers wait, in its own process, for tests that kill it: node waiting-process.ts OPTIONS
const { url, owner }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const conclude = defineCommand({
  name: 'conclude',
  input: z.object({ order: z.string(), text: z.string() }),
  events: order,
  stream: (input) => `outcome of ${input.order}`,
  decide: ({ text }) => ({ type: 'Noted', payload: { order: '-', text } }) as const,
});
const orders = defineReactor({
  name: 'orders',
  events: order,
  from: 'beginning',
  waitsFor: { Paid: ({ payload }) => payload.order },
  handle: {
    async Placed({ streamId }, { execute, wait }) {
      const payment = await wait.for('Paid', { key: streamId, timeout: 3_600_000 });
      await execute(conclude, { order: streamId, text: payment ? 'paid' : 'expired' });
    },
  },
});
const runtime = await startRuntime({
  config: defineConfig({ events: [order], reactors: [orders], runtime: { polling: { min: 10, max: 50 } } }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'silent' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
