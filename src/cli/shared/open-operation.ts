import { hostname, userInfo } from 'node:os';
import type { Config } from '../../config/define-config.ts';
import { embeddedDataDir } from '../../refold.ts';
import { createSchemaEvolution, type SchemaEvolution } from '../../runtime/activation/schema-evolution.ts';
import { openApplicationLog } from '../../runtime/commands/application-log.ts';
import { createReactorOperations, type ReactorOperations } from '../../runtime/reactors/reactor-operations.ts';
import { withinGrace } from '../../runtime/scheduling/grace.ts';
import { type OperatorStores, openOperatorStores } from '../../runtime/stores/operator-stores.ts';
import { lifecycleOfStores, type StoreFinder } from '../../runtime/stores/steps-of-stores.ts';
import { createLifecycle, type Lifecycle } from '../../runtime/versions/lifecycle.ts';
import { damageError, leaveDamaged } from '../../runtime/versions/table-watch.ts';
import { type DatabaseServer, startEmbeddedPostgres } from '../../store/embedded/embedded-postgres.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { errorInStore, type ReadStore, type ReadStores } from '../../store/read-store.ts';
import { migrate } from '../../store/server/migrate.ts';
import { checkServer } from '../../store/server/server-check.ts';
import { checkSessions } from '../../store/server/session-check.ts';

/** What an operator's command needs: the application's database, without running the application. */
export interface Operation {
  /** The database of the log. */
  readonly db: Database;
  readonly stores: ReadStores;
  readonly find: StoreFinder;
  /** The database of a version. */
  dbOf(name: string, version: number): Promise<Database>;
  readonly log: EventLog;
  readonly lifecycle: Lifecycle;
  readonly schemaEvolution: SchemaEvolution;
  readonly reactors: ReactorOperations;
  /** The user who runs the command, for the audit log. */
  readonly actor: string;
  close(): Promise<void>;
}

const longestCloseMs = 5_000;

/** Opens the application's databases, not checked. @param url of the database of the log */
export function openDatabases(config: Config, url: string): OperatorStores {
  return openOperatorStores(config, url, { applicationName: 'refold-cli' });
}

export async function openOperation(config: Config): Promise<Operation> {
  const server = await openMigratedServer(config);
  const { readSchema, notifications: sessions } = config.database;
  const databases = openDatabases(config, server.url);
  const { db, stores, find } = databases;
  const appends = openApplicationLog(db, config, {
    freeze: false,
    applicationName: 'refold-cli',
    leaveDamaged: () => leaveAloud(db, config),
  });
  const close = async () => {
    // A commit that waits for a standby may never end.
    await withinGrace(
      appends.close().then(() => databases.close()),
      longestCloseMs,
      () => {},
    );
    await server.stop();
  };
  try {
    await checkServer(db, readSchema);
    await checkSessions(db, { sessions });
    for (const store of stores.apart) await checkIfAvailable(store, readSchema);
    // Steps of a projection's versions look at all stores that hold some.
    if (stores.apart.length > 0) await find.versions();
  } catch (error) {
    await close();
    throw error;
  }
  const { log } = appends;
  const dbOf = async (name: string, version: number) => (await find.of(name, version)).db;
  return {
    db,
    stores,
    find,
    dbOf,
    log,
    lifecycle: lifecycleOfStores(stores, find, (store) => createLifecycle(store.db, readSchema, config)),
    schemaEvolution: createSchemaEvolution({ db, dbOf, declarations: config }),
    reactors: createReactorOperations(db, log),
    actor: `${userInfo().username}@${hostname()}`,
    close,
  };
}

/** Leaves damaged versions as a running process does for its own appends, and says so. */
async function leaveAloud(db: Database, { projections }: Config): Promise<void> {
  for (const problem of await leaveDamaged(db, projections)) {
    const error = damageError(problem);
    if (error) console.error(`refold: ${error.message} Until then, what is appended is left out of its rows.`);
  }
}

/** What concerns other stores works while one does not respond. */
async function checkIfAvailable({ name, db }: ReadStore, readSchema: string): Promise<void> {
  try {
    await checkServer(db, readSchema);
  } catch (error) {
    if (!isOutage(error)) throw errorInStore(name, error);
  }
}

/** Opens the configured server, or the embedded one, which is started if it is not running. */
export async function openServer(config: Config): Promise<DatabaseServer> {
  const { url } = config.database;
  if (url !== undefined) return { url, stop: async () => {} };
  return startEmbeddedPostgres({ dataDir: embeddedDataDir, say: (line) => console.error(`refold: ${line}`) });
}

/** The same. Migrates an embedded server, which has no other operator. */
export async function openMigratedServer(config: Config): Promise<DatabaseServer> {
  const server = await openServer(config);
  try {
    if (config.database.url === undefined) await migrate(server.url);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Runs one task with the application's database, and closes it in any case. A signal ends the process and its embedded server, unless
 * `onSignal` handles it.
 */
export async function withOperation<T>(
  config: Config,
  work: (operation: Operation) => Promise<T>,
  onSignal?: () => void,
): Promise<T> {
  // The codes of shells for a program that the signal ends.
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, onSignal ?? (() => process.exit(code)));
  const operation = await openOperation(config);
  try {
    return await work(operation);
  } finally {
    await operation.close();
  }
}
