import { pino } from 'pino';
import app from '../../examples/ride-hailing/app.ts';
import { createRefold } from '../../src/index.ts';
import type { WorkerProcessOptions } from '../support/worker-processes.ts';

// A process of the ride hailing, for tests that kill it: NATS_URL=… node ride-process.ts OPTIONS
const { url, owner, role = 'worker' }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const refold = await createRefold(
  {
    ...app,
    development: false,
    database: { ...app.database, url },
    gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
    runtime: { ...app.runtime, polling: { ...app.runtime.polling, min: 20, max: 100 } },
  },
  { role, name: owner, logger: pino({ level: process.env.LOG ?? 'error' }) },
);
process.once('SIGTERM', () => void refold.stop().then(() => process.exit(0)));
if (refold.url) process.stdout.write(`${JSON.stringify({ msg: refold.url })}\n`);
process.stdout.write('started\n');
