import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { Placement } from '../../src/config/read-store-options.ts';
import { type Config, createRefold, defineConfig, type Projection, type Refold } from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { type Feed, followFeed } from './feed-client.ts';
import { startOwnServer } from './own-server.ts';
import type { PostgresCluster } from './postgres-cluster.ts';
import { balanceV1, credit, openAccount, openingsV1 } from './sample-domain.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';
import { until } from './until.ts';

/** The version, declared in the store of {@link storeSetting}. */
export const inStore = <P extends Projection>(projection: P): P => Object.freeze({ ...projection, store: 'analytics' });

export interface Start {
  readonly projections?: readonly Projection[];
  readonly role?: 'all' | 'gateway' | 'worker';
  readonly acrossStores?: boolean;
  readonly storeUrl?: string;
  /** The name of the process. @default another one each time */
  readonly name?: string;
  /** Of the admin API, with all rights. @default there is no admin API */
  readonly adminToken?: string;
  /** Whether it has the store in its configuration. @default true */
  readonly knowsStore?: boolean;
}

/** A migrated database for a read store. */
export interface StoreServer extends Pick<PostgresCluster, 'url' | 'kill' | 'restart'> {
  /** Of a Citus cluster. */
  readonly placement?: Placement;
  stop(): Promise<void>;
}

/** Applications whose log is in a database of the test, and whose store `analytics` is another server. Called at the top of a test file. */
export function storeSetting(startStore: () => Promise<StoreServer> = startOwnServer) {
  const apps: Refold[] = [];
  const feeds: Feed[] = [];
  const said: string[] = [];
  let started = 0;
  let server: StoreServer;
  let log: TestDatabase;
  let store: Database;

  beforeAll(async () => {
    server = await startStore();
    store = createDatabase({ url: server.url });
  });
  afterAll(async () => {
    await store.close();
    await server.stop();
  });
  beforeEach(async () => {
    log = await createTestDatabase();
  });
  afterEach(async () => {
    for (const feed of feeds.splice(0)) await feed.stop();
    for (const app of apps.splice(0)) await app.stop();
    await log.drop();
    said.splice(0);
    // Each test has a log of its own.
    for (const { name, version } of await readRegistry(store))
      await store.query({
        text: 'delete from refold.projections where name = $1 and version = $2',
        values: [name, version],
      });
    await store.query({ text: 'drop schema if exists read_models cascade' });
    await store.query({
      text: 'truncate refold.changes, refold.change_floors, refold.processes, refold.transitions, refold.old_tables',
    });
  });

  function configOf({
    projections = [inStore(balanceV1), openingsV1],
    acrossStores = false,
    storeUrl = server.url,
    knowsStore = true,
    adminToken,
  }: Start = {}): Config {
    const admin = adminToken && { tokens: [{ name: 'ada', token: adminToken, rights: 'all' as const }] };
    return defineConfig({
      projections,
      commands: [openAccount, credit],
      database: { url: log.url },
      ...(knowsStore ? { readStores: { analytics: { url: storeUrl, ...placed() } } } : {}),
      gateway: { port: 0, positionTimeout: 60_000, acrossStores, ...(admin ? { admin } : {}) },
    });
  }

  function placed() {
    return server.placement === undefined ? {} : { placement: server.placement };
  }

  return {
    /** What the applications have logged. */
    said,
    get server() {
      return server;
    },
    /** The database of the store. */
    get store() {
      return store;
    },
    get log() {
      return log;
    },
    set log(other: TestDatabase) {
      log = other;
    },
    configOf,
    async start(options: Start = {}): Promise<Refold> {
      const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line).msg) });
      const app = await createRefold(configOf(options), {
        ...{ logger, role: options.role ?? 'all', name: options.name ?? `process-${++started}` },
      });
      apps.push(app);
      return app;
    },
    follow(app: Refold, selection: string): Feed {
      const feed = followFeed(`${app.url}/graphql`, selection);
      feeds.push(feed);
      return feed;
    },
  };
}

export async function answer(app: Refold, query: string) {
  const { data, errors } = await app.graphql(query);
  expect(errors).toBeUndefined();
  return JSON.parse(JSON.stringify(data));
}

export async function open(app: Refold, ...ids: string[]): Promise<void> {
  for (const accountId of ids) await app.execute(openAccount, { accountId, owner: 'ada' });
}

export async function active(app: Refold, ...ids: string[]): Promise<void> {
  await until(async () => {
    const versions = await app.status();
    return ids.every((id) => versions.some((one) => `${one.name}@${one.version}` === id && one.state === 'active'));
  });
}

/** Waits until a version answers, has no rebuild, and has folded everything. */
export async function caughtUp(app: Refold, id: string): Promise<void> {
  const horizon = await app.log.horizon();
  await until(async () => {
    const found = (await app.status()).find((one) => `${one.name}@${one.version}` === id);
    return found?.state === 'active' && found.rebuild === null && found.position >= horizon;
  });
}
