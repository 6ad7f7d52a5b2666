import { pino } from 'pino';
import app from '../../../examples/money-transfer/app.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';

// A worker of the money transfer sample in its own process, for tests that kill it: node workflow-process.ts OPTIONS
const { url, owner }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
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
