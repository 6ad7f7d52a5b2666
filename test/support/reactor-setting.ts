import { pino } from 'pino';
import { defineConfig, type Reactor } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { account } from './sample-domain.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';
import { until } from './until.ts';

/** A database and the processes of one test of reactors. */
export interface ReactorSetting {
  readonly database: TestDatabase;
  start(reactors: readonly Reactor[], options?: { maintain?: boolean; stopTimeout?: number }): Promise<Runtime>;
  stop(runtime: Runtime): Promise<void>;
  close(): Promise<void>;
}

export async function createReactorSetting(): Promise<ReactorSetting> {
  const database = await createTestDatabase();
  const running = new Set<Runtime>();
  return {
    database,
    async start(reactors, { maintain = true, stopTimeout = 10_000 } = {}) {
      const runtime = await startRuntime({
        config: defineConfig({ events: [account], reactors, runtime: { polling: { min: 10, max: 50 }, stopTimeout } }),
        url: database.url,
        owner: 'test',
        development: false,
        maintain,
        logger: pino({ level: process.env.LOG ?? 'silent' }),
      });
      running.add(runtime);
      return runtime;
    },
    async stop(runtime) {
      running.delete(runtime);
      await runtime.stop();
    },
    async close() {
      for (const runtime of running) await runtime.stop();
      await database.drop();
    },
  };
}

export async function append({ log }: Runtime, streamId: string, ...amounts: string[]): Promise<void> {
  for (const amount of amounts)
    await log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount } }] });
}

/** The status of the only reactor. */
export async function status({ reactors }: Runtime) {
  return (await reactors.status())[0];
}

/** Waits until the only reactor has handled all events. */
export async function settled(runtime: Runtime): Promise<void> {
  const head = await runtime.log.head();
  await until(async () => ((await status(runtime))?.position ?? -1n) >= head);
}
