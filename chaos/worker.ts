import pg from 'pg';
import { pino } from 'pino';
import { createRefold, defineConfig } from '../src/index.ts';
import { apart, declaredInStores } from './apart.ts';
import { families } from './domain.ts';
import type { ProcessOptions } from './processes.ts';
import { dispatch, reactorsOf } from './reactors.ts';
import { beSlow } from './slowness.ts';

// A worker process that the run kills: node worker.ts OPTIONS. It prints `started`.
const { url, storeUrl, ownership, leaseSeconds, lowest, highest }: ProcessOptions = JSON.parse(process.argv[2] ?? '');
beSlow();
const outside = new pg.Pool({ connectionString: url, max: 4 });
outside.on('error', () => {}); // a session that was terminated while idle
const refold = await createRefold(
  defineConfig({
    events: families,
    projections: declaredInStores(lowest, highest),
    commands: [dispatch],
    reactors: reactorsOf(outside),
    // Small pages and infrequent write-back, so many events lie between two batches.
    runtime: {
      pageSize: 50,
      polling: { min: 20, max: 500 },
      ownership,
      ...(ownership === 'lease' ? { leaseSeconds } : {}),
    },
    database: { url },
    readStores: { [apart]: { url: storeUrl } },
    development: false,
  }),
  { role: 'worker', migrate: false, logger: pino({ level: process.env.LOG ?? 'warn' }) },
);
process.once('SIGTERM', () => {
  void refold
    .stop()
    .then(() => outside.end())
    .then(() => process.exit(0));
});
process.stdout.write('started\n');
