import type { Logger } from 'pino';
import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import { shareStoreConnections } from '../../config/read-store-options.ts';
import { createDatabase, type Database } from '../../store/postgres/database.ts';
import type { ReadStore, ReadStores } from '../../store/read-store.ts';
import { createReplica, type Replica } from './replica.ts';

// Many times what a reachable server needs for the smallest response. Milliseconds.
const answerTime = 5000;

/** The replicas of a process. */
export interface Replicas {
  /** By the names of their read stores. */
  readonly byStore: ReadonlyMap<string, Replica>;
  /** See {@link Replica.forget}. */
  forget(): void;
  close(): Promise<void>;
}

/** Starts to watch the configured replicas. */
export function openReplicas(config: Config, stores: ReadStores, logger: Logger): Replicas {
  const opened = configuredReplicas(config, stores).map((configured): [string, Replica] => {
    const { store, maxLag } = configured;
    const { name, db: primary } = store;
    const db = openReads(config, configured);
    return [name, createReplica({ store: name, primary, db, watch: openWatch(config, configured), maxLag, logger })];
  });
  const replicas = opened.map(([, replica]) => replica);
  return {
    byStore: new Map(opened),
    forget() {
      for (const replica of replicas) replica.forget();
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.close()));
    },
  };
}

/** A replica in the configuration. */
export interface ConfiguredReplica {
  readonly store: ReadStore;
  readonly url: string;
  /** Milliseconds. */
  readonly maxLag: number;
}

export function configuredReplicas(
  { database, readStores }: Pick<Config, 'database' | 'readStores'>,
  { home, apart }: Pick<ReadStores, 'home' | 'apart'>,
): readonly ConfiguredReplica[] {
  return [home, ...apart].flatMap((store) => {
    const options = store === home ? database : readStores[store.name];
    return options?.readUrl === undefined ? [] : [{ store, url: options.readUrl, maxLag: options.maxReadLag }];
  });
}

/** The pool for checks of a replica. */
export function openWatch(config: Pick<Config, 'database'>, configured: ConfiguredReplica): Database {
  return createDatabase({
    ...connectionTo(config, configured),
    maxConnections: 1,
    answerTimeoutMs: answerTime,
    applicationName: 'refold-replica-watch',
  });
}

function openReads(config: Config, configured: ConfiguredReplica): Database {
  const { readStores, gateway } = config;
  const options = readStores[configured.store.name];
  return createDatabase({
    ...connectionTo(config, configured),
    maxConnections: (options ? shareStoreConnections(options, gateway) : shareConnections(config)).reads,
    statementTimeoutMs: gateway.statementTimeout,
    maxAnswerSize: gateway.maxAnswerSize,
    answerTimeoutMs: gateway.statementTimeout + answerTime,
    applicationName: 'refold-replica-reads',
  });
}

/** A replica that has vanished must not block its readers: the primary can serve them. */
function connectionTo({ database }: Pick<Config, 'database'>, { store, url }: ConfiguredReplica) {
  const { prepare, notifications: sessions } = database;
  const { elsewhere } = store.db;
  return { url, prepare, sessions, elsewhere, connectTimeoutMs: answerTime, shortStatements: true };
}
