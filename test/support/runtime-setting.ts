import { multistream, pino } from 'pino';
import { afterEach, beforeEach } from 'vitest';
import type { Config, Projection } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';
import { until } from './until.ts';

/** A database, and the runtimes that a test starts on it. */
export interface RuntimeSetting {
  readonly database: TestDatabase;
  /** What the runtimes have logged, from level `info`. */
  readonly messages: readonly string[];
  start(config: Config, options?: StartOptions): Promise<Runtime>;
  stop(runtime: Runtime): Promise<void>;
}

export interface StartOptions {
  /** @default 'test' */
  readonly owner?: string;
  /** @default true */
  readonly maintain?: boolean;
  /** @default false */
  readonly development?: boolean;
}

/** `close` stops the runtimes that still run, and drops the database. The environment variable `LOG` also prints what they log, from that level. */
export async function createRuntimeSetting(): Promise<RuntimeSetting & { close(): Promise<void> }> {
  const database = await createTestDatabase();
  const running = new Set<Runtime>();
  const messages: string[] = [];
  const kept = { write: (line: string) => void messages.push(JSON.parse(line).msg) };
  const { LOG: level } = process.env;
  const printed = level === undefined ? [] : [{ level: level as pino.Level, stream: process.stdout }]; // the caller's choice
  const logger = pino({ level: level === undefined ? 'info' : 'trace' }, multistream([{ stream: kept }, ...printed]));
  return {
    database,
    messages,
    async start(config, { owner = 'test', maintain = true, development = false } = {}) {
      const runtime = await startRuntime({ config, url: database.url, owner, development, maintain, logger });
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

/** A setting for each test of the file. Call it at the top: what the file itself ends after a test then ends before the runtimes. */
export function settingOfEachTest(): RuntimeSetting {
  let current: Awaited<ReturnType<typeof createRuntimeSetting>>;
  beforeEach(async () => {
    current = await createRuntimeSetting();
  });
  afterEach(() => current.close());
  return {
    get database() {
      return current.database;
    },
    get messages() {
      return current.messages;
    },
    start: (config, options) => current.start(config, options),
    stop: (runtime) => current.stop(runtime),
  };
}

/** What the registry holds of a version. */
export async function registered({ db }: Runtime, { name, version }: Projection) {
  return (await readRegistry(db)).find((one) => one.name === name && one.version === version);
}

/** Waits until a version has this state, and has folded everything that was in the log. */
export async function reaches(runtime: Runtime, projection: Projection, state: string): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () => {
    const version = await registered(runtime, projection);
    return version && version.checkpoint >= horizon && version.state === state;
  });
  await runtime.versions.refresh();
}
