import { pino } from 'pino';
import { defineConfig, defineReactor } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { account } from '../../support/sample-domain.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';

// A worker whose handler ends its process at the amount 666, after the test knows that it runs: node deadly-process.ts OPTIONS
const { url, owner }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const started = Promise.withResolvers<void>();
const deadly = defineReactor({
  name: 'deadly',
  events: account,
  from: 'beginning',
  handle: {
    async Credited({ payload }) {
      await started.promise;
      if (payload.amount === '666') process.exit(1);
    },
  },
  onError: { policy: 'dead-letter', retries: [{ on: 'PROCESS_ENDED', times: 1 }] },
});
const runtime = await startRuntime({
  config: defineConfig({ events: [account], reactors: [deadly], runtime: { polling: { min: 10, max: 50 } } }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'silent' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n', () => started.resolve());
