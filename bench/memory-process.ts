/** Builds two read models of a log, with a reactor that can't keep up, and reports its memory all the time: node memory-process.ts URL */
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { createRefold, defineConfig, defineReactor } from '../src/index.ts';
import { cart, cartSummary, productSales } from './carts.ts';

/** The memory of the process at a moment, in bytes. */
export interface MemorySample {
  readonly rss: number;
  readonly heap: number;
  /** Position of the slower read model. */
  readonly position: number;
  readonly done: boolean;
}

/** A hundred events per second: it falls behind by nearly the whole log. */
const slow = defineReactor({
  name: 'slow',
  events: cart,
  from: 'beginning',
  handle: () => pause(10),
});

const [, , url = ''] = process.argv;
const refold = await createRefold(
  defineConfig({ projections: [cartSummary, productSales], reactors: [slow], database: { url }, development: false }),
  { role: 'worker', migrate: false, logger: pino({ level: 'error' }, pino.destination(2)) },
);
for (let done = false; !done; await pause(250)) {
  const versions = await refold.status();
  done = versions.every(({ state }) => state === 'active');
  const { rss, heapUsed: heap } = process.memoryUsage();
  const position = Math.min(...versions.map((version) => Number(version.position)));
  process.send?.({ rss, heap, position, done } satisfies MemorySample);
}
await refold.stop();
process.disconnect();
