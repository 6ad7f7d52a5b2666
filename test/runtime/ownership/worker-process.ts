import { pino } from 'pino';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { totalsBySql } from '../../support/account-totals.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { balanceV1, balanceV2, inPartitions, openingsV1, talliesOf } from '../../support/sample-domain.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';

// A worker in its own process, for tests that kill it: node worker-process.ts OPTIONS
const {
  url,
  owner,
  runtime: options,
  database,
  tallies = 0,
  partitions = 1,
  evolveSql = false,
  inline = false,
  storeUrl,
  placement,
}: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const inStore = (projection: Projection): Projection =>
  storeUrl === undefined ? projection : Object.freeze({ ...projection, store: 'apart' });
const runtime = await startRuntime({
  config: defineConfig({
    ...(storeUrl === undefined
      ? {}
      : {
          readStores: {
            apart: { url: storeUrl, maxConnections: 8, ...(placement === undefined ? {} : { placement }) },
          },
        }),
    projections: [
      ...[balanceV1, balanceV2, openingsV1].map((projection) => inStore(inPartitions(projection, partitions))),
      ...talliesOf(tallies),
      ...(evolveSql ? [inStore(inPartitions(totalsBySql, partitions))] : []),
      ...(inline ? [inlineBalance] : []),
    ],
    runtime: { pageSize: 100, polling: { min: 20, max: 100 }, ...options },
    database: { ...database },
  }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'warn' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
