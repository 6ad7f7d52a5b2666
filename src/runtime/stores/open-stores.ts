import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import { type CheckedReadStores, shareStoreConnections } from '../../config/read-store-options.ts';
import { defaultStore, type Projection } from '../../projections/projection/projection.ts';
import { createDatabase, type Database } from '../../store/postgres/database.ts';
import { createNotifications, type Notifications, noNotifications } from '../../store/postgres/notifications.ts';
import { type ReadStore, type ReadStores, readStores } from '../../store/read-store.ts';
import type { Elsewhere, Queryable } from '../../store/statements/statement.ts';

/** What the databases of an application know of each other. `connect` makes it known, once all of them are created. */
export interface StoreLinks {
  /** For the database of the log; undefined if it holds all read models. */
  readonly home: Elsewhere | undefined;
  of(store: string, log: Queryable): Elsewhere;
  connect(stores: ReadonlyMap<string, Queryable>): void;
  /** Replaces the declared versions. */
  declare(projections: readonly Projection[]): void;
  /** Replaces the versions that registries contain. */
  found(versions: readonly FoundVersion[]): void;
}

/** A version that a registry contains. */
export interface FoundVersion {
  readonly name: string;
  readonly store: string;
}

export function createStoreLinks(declared: readonly Projection[], stores: CheckedReadStores): StoreLinks {
  let projections = declared;
  let registered: readonly FoundVersion[] = [];
  let databases: ReadonlyMap<string, Queryable> = new Map();

  function storesOf(own: string, name: string): readonly Queryable[] {
    const others = new Set([...projections, ...registered].flatMap((one) => (one.name === name ? [one.store] : [])));
    others.delete(own);
    return [...others].flatMap((store) => databases.get(store) ?? []);
  }

  const elsewhere = (own: string, log: Queryable | undefined): Elsewhere => ({
    log,
    placement: stores[own]?.placement,
    storesOf: (name) => storesOf(own, name),
    others: () => [...databases].flatMap(([store, db]) => (store === own ? [] : [db])),
  });
  return {
    home: Object.keys(stores).length === 0 ? undefined : elsewhere(defaultStore, undefined),
    of: elsewhere,
    connect(given) {
      databases = given;
    },
    declare(next) {
      projections = next;
    },
    found(given) {
      registered = given;
    },
  };
}

/** Opens the pools of all stores apart from the log. No connection is opened before the first statement. */
function openReadStores(
  { database, readStores: configured, gateway }: Config,
  home: ReadStore,
  links: StoreLinks,
): ReadStores & { close(): Promise<void> } {
  const { prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = database;
  const apart = Object.entries(configured).map(([name, options]): ReadStore => {
    const { url } = options;
    const shares = shareStoreConnections(options, gateway);
    const connection = { url, prepare, sessions, answerTimeoutMs };
    return {
      name,
      url,
      db: createDatabase({ ...connection, maxConnections: shares.work, elsewhere: links.of(name, home.db) }),
      reads: createDatabase({
        ...connection,
        maxConnections: shares.reads,
        pipeline: sessions,
        statementTimeoutMs: gateway.statementTimeout,
        maxAnswerSize: gateway.maxAnswerSize,
        applicationName: 'refold-reads',
        elsewhere: links.of(name, home.reads),
      }),
      notifications: sessions ? createNotifications({ url, answerTimeoutMs }) : noNotifications,
    };
  });
  links.connect(new Map<string, Database>([home, ...apart].map(({ name, db }) => [name, db])));
  return {
    ...readStores(home, apart),
    async close() {
      for (const { db, reads, notifications } of apart)
        await Promise.all([notifications.close(), reads.close(), db.close()]);
    },
  };
}

export interface OpenStores {
  /** The pool of the log's database, for batches, the registry, and appends that no inline projection folds. */
  readonly db: Database;
  /** The pool of reads of the log's database. */
  readonly reads: Database;
  /** Those of the log's database. */
  readonly notifications: Notifications;
  readonly stores: ReadStores;
  readonly links: StoreLinks;
  close(): Promise<void>;
}

/** Opens the pools of a process to all its databases. No connection is opened before the first statement. */
export function openStores(config: Config, url: string): OpenStores {
  const { prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = config.database;
  const shares = shareConnections(config);
  const links = createStoreLinks(config.projections, config.readStores);
  const connection = { url, prepare, sessions, answerTimeoutMs, elsewhere: links.home };
  const db = createDatabase({ ...connection, maxConnections: shares.work });
  // Reads have their own pool: slow queries must not take the connections that appends and batches need.
  const reads = createDatabase({
    ...connection,
    maxConnections: shares.reads,
    pipeline: sessions,
    statementTimeoutMs: config.gateway.statementTimeout,
    maxAnswerSize: config.gateway.maxAnswerSize,
    applicationName: 'refold-reads',
  });
  const notifications = sessions ? createNotifications({ url, answerTimeoutMs }) : noNotifications;
  const stores = openReadStores(config, { name: defaultStore, url, db, reads, notifications }, links);
  return {
    ...{ db, reads, notifications, stores, links },
    async close() {
      await stores.close();
      await notifications.close();
      await reads.close();
      await db.close();
    },
  };
}
