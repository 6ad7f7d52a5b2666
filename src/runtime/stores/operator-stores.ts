import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import { shareStoreConnections } from '../../config/read-store-options.ts';
import { defaultStore } from '../../projections/projection/projection.ts';
import { createDatabase, type Database } from '../../store/postgres/database.ts';
import { noNotifications } from '../../store/postgres/notifications.ts';
import { type ReadStore, type ReadStores, readStores } from '../../store/read-store.ts';
import type { Elsewhere } from '../../store/statements/statement.ts';
import { createStoreLinks } from './open-stores.ts';
import { createStoreFinder, type StoreFinder } from './steps-of-stores.ts';

/** The databases of an application for its operators, each with one pool. Not checked. */
export interface OperatorStores {
  /** That of the log. */
  readonly db: Database;
  readonly stores: ReadStores;
  readonly find: StoreFinder;
  close(): Promise<void>;
}

export interface OperatorConnections {
  readonly applicationName: string;
  /** Of each pool. @default as many as batches have in a process of the application */
  readonly maxConnections?: number;
  /** @default no limit */
  readonly statementTimeoutMs?: number;
  /** @default no limit */
  readonly maxAnswerSize?: number;
  /** See {@link ReadStores}. */
  readonly silent?: ReadStores['silent'];
  /** See {@link ReadStores}. */
  readonly untilSilent?: ReadStores['untilSilent'];
}

/**
 * Opens a pool to each database. No connection is opened before the first statement.
 *
 * @param config whose projections are read each time, because they may be replaced in development
 * @param url of the database of the log
 */
export function openOperatorStores(
  config: Pick<Config, 'database' | 'readStores' | 'gateway' | 'projections'>,
  url: string,
  { maxConnections, silent, untilSilent, ...options }: OperatorConnections,
): OperatorStores {
  const { prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = config.database;
  const links = createStoreLinks(config.projections, config.readStores);
  const connection = { ...options, prepare, sessions, answerTimeoutMs };
  const open = (name: string, of: string, most: number, elsewhere: Elsewhere | undefined): ReadStore => {
    const db = createDatabase({ ...connection, url: of, maxConnections: maxConnections ?? most, elsewhere });
    return { name, url: of, db, reads: db, notifications: noNotifications };
  };
  const home = open(defaultStore, url, shareConnections(config).work, links.home);
  const apart = Object.entries(config.readStores).map(([name, store]) =>
    open(name, store.url, shareStoreConnections(store, config.gateway).work, links.of(name, home.db)),
  );
  const all = [home, ...apart];
  links.connect(new Map(all.map(({ name, db }) => [name, db])));
  const stores = { ...readStores(home, apart), ...(silent ? { silent } : {}), ...(untilSilent ? { untilSilent } : {}) };
  return {
    db: home.db,
    stores,
    find: createStoreFinder(stores, config, links.found),
    async close() {
      for (const { db } of all.reverse()) await db.close();
    },
  };
}
