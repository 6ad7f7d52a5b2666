import { pino } from 'pino';
import { startRuntime } from '../../src/runtime/runtime.ts';
import type { WorkerProcessOptions } from '../support/worker-processes.ts';

const releases = {
  1: async () => (await import('./hotel-release-1.ts')).default,
  2: async () => (await import('./hotel-release-2.ts')).default,
  3: async () => (await import('../../examples/hotel/app.ts')).default,
};

// A worker of a release of the hotel in its own process, for tests that kill it: node hotel-process.ts OPTIONS
const { url, owner, hotel = 3 }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const app = await releases[hotel]();
const runtime = await startRuntime({
  config: { ...app, runtime: { ...app.runtime, polling: { ...app.runtime.polling, min: 20, max: 100 } } },
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'warn' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
