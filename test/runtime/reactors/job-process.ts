import { pino } from 'pino';
import { z } from 'zod';
import { defineCommand, defineConfig, defineReactor } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import type { WorkerProcessOptions } from '../../support/worker-processes.ts';
import { job } from './job-events.ts';

// A worker whose name has the versions of the reactor that it declares, such as `worker-1 v1 v2`: node job-process.ts OPTIONS
const { url, owner }: WorkerProcessOptions = JSON.parse(process.argv[2] ?? '');
const run = defineCommand({
  name: 'run',
  input: z.object({ id: z.string(), by: z.string() }),
  events: job,
  stream: ({ id }) => id,
  decide: ({ by }) => ({ type: 'Ran', payload: { by } }),
});
const jobs = (version: number) =>
  defineReactor({
    name: 'jobs',
    version,
    events: job,
    from: 'beginning',
    concurrency: 3,
    handle: {
      async Asked({ streamId: id }, { execute }) {
        // Each version has steps of its own: if two versions handled an event, the stream would have both.
        for (const name of ['first', 'second']) {
          const by = `v${version} ${name}`;
          await execute(run, { id, by }, { step: by });
        }
      },
    },
  });
const runtime = await startRuntime({
  config: defineConfig({
    reactors: [...owner.matchAll(/ v(\d)/g)].map(([, version]) => jobs(Number(version))),
    runtime: { polling: { min: 10, max: 50 } },
  }),
  url,
  owner,
  development: false,
  maintain: true,
  logger: pino({ level: process.env.LOG ?? 'silent' }),
});
process.once('SIGTERM', () => void runtime.stop().then(() => process.exit(0)));
process.stdout.write('started\n');
