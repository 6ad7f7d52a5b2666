import { pino } from 'pino';
import { defineConfig } from '../../src/index.ts';
import { startRuntime } from '../../src/runtime/runtime.ts';
import { balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';

// A worker in a process of its own, for tests that kill it: node worker-process.ts URL OWNER
const [, , url = '', owner = ''] = process.argv;
const runtime = await startRuntime({
  config: defineConfig({
    projections: [balanceV1, balanceV2, openingsV1],
    runtime: { pageSize: 100, polling: { min: 20, max: 100 } },
  }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'silent' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
