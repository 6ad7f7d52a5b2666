import { pino } from 'pino';
import { defineConfig } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { countingMovements } from '../../support/inline-domain.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';

// A worker in its own process that kills itself in the middle of a build: node inline-worker-process.ts OPTIONS
const { url, owner, killAt }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const runtime = await startRuntime({
  config: defineConfig({
    projections: [countingMovements(killAt)],
    runtime: { pageSize: 100, polling: { min: 20, max: 100 } },
  }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'warn' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
