import { randomInt, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { defineConfig, RefoldError } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { account } from '../../support/sample-domain.ts';
import { uniqueOwners } from '../../support/unique-domain.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';

// A process that maintains the versions and claims owners that others claim, too: node unique-writer-process.ts OPTIONS
const {
  url,
  owner,
  writers = 4,
  upTo = 1,
  rule = { begins: 1, onError: 'stop' },
}: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const logger = pino({ level: process.env.LOG ?? 'error' });
const runtime = await startRuntime({
  config: defineConfig({
    projections: uniqueOwners(rule).slice(0, upTo),
    events: [account],
    database: { appendLockTimeout: 500 },
  }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: 'silent' }),
});
const expected = new Set([
  'EVOLVE_FAILED',
  'UNIQUE_CHECK_UNAVAILABLE',
  'STREAM_LOCKED',
  'DATABASE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
]);
let going = true;
// Few values, so most claims meet another one; more of them later, so some are always free.
let values = 10;
const work = Array.from({ length: writers }, async () => {
  while (going) {
    const events = [{ type: 'Opened', payload: { owner: `value ${randomInt(values++)}` } }] as const;
    await runtime.log.append({ family: account, streamId: randomUUID(), events }).catch((error: unknown) => {
      if (!(error instanceof RefoldError) || !expected.has(error.code)) logger.error({ err: error }, 'unexpected');
    });
  }
});
process.once('SIGTERM', async () => {
  going = false;
  await Promise.all(work);
  await runtime.stop();
  process.exit(0);
});
process.stdout.write('started\n');
