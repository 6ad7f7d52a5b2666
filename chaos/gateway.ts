import { pino } from 'pino';
import { createRefold, defineConfig } from '../src/index.ts';
import { apart, declaredInStores } from './apart.ts';
import { claimValue, move } from './commands.ts';
import { families } from './domain.ts';
import type { ProcessOptions } from './processes.ts';

// A gateway process that the run kills: node gateway.ts OPTIONS. It prints `started`.
const options: ProcessOptions = JSON.parse(process.argv[2] ?? '');
const { url, storeUrl, ownership, leaseSeconds, lowest, highest, port = 0 } = options;
const refold = await createRefold(
  defineConfig({
    events: families,
    projections: declaredInStores(lowest, highest),
    commands: [claimValue, move],
    runtime: { polling: { min: 20, max: 500 }, ownership, ...(ownership === 'lease' ? { leaseSeconds } : {}) },
    database: { url },
    readStores: { [apart]: { url: storeUrl } },
    gateway: { port },
    development: false,
  }),
  { role: 'gateway', migrate: false, logger: pino({ level: process.env.LOG ?? 'warn' }) },
);
process.once('SIGTERM', () => void refold.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
