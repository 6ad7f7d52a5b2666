import { pino } from 'pino';
import { createRefold, defineConfig } from '../src/index.ts';
import { move } from './commands.ts';
import { declared, families } from './domain.ts';
import type { ProcessOptions } from './processes.ts';

// A gateway process that the run kills: node gateway.ts OPTIONS. It prints `started`.
const { url, ownership, leaseSeconds, lowest, highest, port = 0 }: ProcessOptions = JSON.parse(process.argv[2] ?? '');
const refold = await createRefold(
  defineConfig({
    events: families,
    projections: declared(lowest, highest),
    commands: [move],
    runtime: { polling: { min: 20, max: 500 }, ownership, ...(ownership === 'lease' ? { leaseSeconds } : {}) },
    database: { url },
    gateway: { port },
    development: false,
  }),
  { role: 'gateway', migrate: false, logger: pino({ level: process.env.LOG ?? 'warn' }) },
);
process.once('SIGTERM', () => void refold.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
