import { multistream, pino } from 'pino';
import { afterEach, beforeEach } from 'vitest';
import { maintainedBy } from '../../src/config/maintained.ts';
import { type Config, defineConfig, type Projection } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';
import { until } from './until.ts';

/** A database, and the runtimes that a test starts on it. */
export interface RuntimeSetting {
  readonly database: TestDatabase;
  /** The database of the read models, if it is another one. */
  readonly storeUrl: string | undefined;
  /** What the runtimes have logged, from level `info`. */
  readonly messages: readonly string[];
  /** If the read models have a database of their own, `db` of the runtime is that one. */
  start(config: Config, options?: StartOptions): Promise<Runtime>;
  stop(runtime: Runtime): Promise<void>;
}

export interface StartOptions {
  /** @default 'test' */
  readonly owner?: string;
  /** @default true */
  readonly maintain?: boolean;
  /** What it maintains. @default everything that is declared */
  readonly only?: readonly string[];
  /** @default false */
  readonly development?: boolean;
}

/** `close` stops the runtimes that still run, and drops the database. The environment variable `LOG` also prints what they log, from that level. */
export async function createRuntimeSetting(
  place: Place = 'together',
): Promise<RuntimeSetting & { close(): Promise<void> }> {
  const database = await createTestDatabase();
  const store = place === 'apart' ? await createTestDatabase() : undefined;
  const running = new Set<Runtime>();
  const messages: string[] = [];
  const kept = { write: (line: string) => void messages.push(JSON.parse(line).msg) };
  const { LOG: level } = process.env;
  const printed = level === undefined ? [] : [{ level: level as pino.Level, stream: process.stdout }]; // the caller's choice
  const logger = pino({ level: level === undefined ? 'info' : 'trace' }, multistream([{ stream: kept }, ...printed]));
  return {
    database,
    storeUrl: store?.url,
    messages,
    async start(given, { owner = 'test', maintain = true, development = false, only } = {}) {
      const config = store ? withStore(given, store.url) : given;
      const runtime = await startRuntime({
        ...{ config, url: database.url, owner, development, maintain, logger },
        maintained: maintainedBy(config, only),
      });
      const [apart] = runtime.stores.apart;
      const shown: Runtime = apart ? Object.create(runtime, { db: { value: apart.db } }) : runtime;
      running.add(shown);
      return shown;
    },
    async stop(runtime) {
      running.delete(runtime);
      await runtime.stop();
    },
    async close() {
      for (const runtime of running) await runtime.stop();
      await database.drop();
      await store?.drop();
    },
  };
}

/** Where read models are: with the log, or in a database of their own, by configuration alone. */
export type Place = 'together' | 'apart';

function withStore({ given }: Config, url: string): Config {
  return defineConfig({ ...given, readStores: { apart: { url, maxConnections: 8 } }, store: 'apart' });
}

/** A setting for each test of the file. Call it at the top: what the file itself ends after a test then ends before the runtimes. */
export function settingOfEachTest(place: Place = 'together'): RuntimeSetting {
  let current: Awaited<ReturnType<typeof createRuntimeSetting>>;
  beforeEach(async () => {
    current = await createRuntimeSetting(place);
  });
  afterEach(() => current.close());
  return {
    get database() {
      return current.database;
    },
    get storeUrl() {
      return current.storeUrl;
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
