import type { Logger } from 'pino';
import type { Maintained } from '../config/maintained.ts';
import { defaultStore, type Projection } from '../projections/projection/projection.ts';
import { isOutage } from '../store/postgres/database-errors.ts';
import type { ReadStore } from '../store/read-store.ts';
import { reasonOf } from '../thrown.ts';
import { type MaintenanceOptions, startMaintenance } from './maintenance.ts';
import { createDatabaseWatch } from './ownership/database-watch.ts';
import { createOutages } from './ownership/outages.ts';
import { announcePresence, type ProcessDescription } from './ownership/presence.ts';
import { startPeriodicTask } from './scheduling/periodic-task.ts';
import { createTableWatch, type TableWatch } from './versions/table-watch.ts';
import type { Versions } from './versions/versions.ts';

/** What a process does for the versions of one store, without being asked. */
export interface StoreMaintenance {
  /** Undefined if the process neither maintains nor serves anything, or if the store has not responded yet. */
  readonly tables: TableWatch | undefined;
  /** Why the store can't be used; undefined if it can, and for the store of the log, which is watched on its own. */
  problem(): string | undefined;
  /** Whether that is because it does not respond. */
  isSilent(): boolean;
  stop(): Promise<void>;
}

export interface StoreMaintenanceOptions
  extends Omit<MaintenanceOptions, 'url' | 'db' | 'tables' | 'described' | 'store' | 'versions'> {
  readonly versions: Versions;
  readonly store: ReadStore;
  readonly described: ProcessDescription;
  /** Whether this process maintains read tables. */
  readonly maintain: boolean;
  /** Whether it answers clients. */
  readonly serves: boolean;
}

export function maintainStore(options: StoreMaintenanceOptions): StoreMaintenance {
  const { store, config, maintained, described, maintain, serves, versions, logger } = options;
  const { db, url } = store;
  const own = ofStore(maintained, store.name);
  const projections = inStore(config.projections, store.name);
  const { notifications } = store;
  const tables = maintain || serves ? createTableWatch({ db, notifications, projections, logger }) : undefined;
  const stopWork =
    maintain && tables
      ? startMaintenance({
          ...options,
          ...{ maintained: own, url, db, tables, store: store.name, versions: versions.in(store.name) },
        })
      : undefined;
  const presence = !stopWork && serves ? announcePresence(db, described, logger) : undefined;
  return {
    tables,
    problem: () => undefined,
    isSilent: () => false,
    async stop() {
      await stopWork?.();
      await presence?.stop();
      await tables?.stop();
    },
  };
}

/** Reactors belong to the log. */
function ofStore({ projections, reactors }: Maintained, store: string): Maintained {
  return {
    projections: inStore(projections, store),
    reactors: store === defaultStore ? reactors : [],
  };
}

/** The declared versions, as copies of this store: its registry says which of them it has. */
function inStore(projections: readonly Projection[], store: string): readonly Projection[] {
  return projections
    .filter(({ mode }) => mode !== 'inline' || store === defaultStore)
    .map((projection) => (projection.store === store ? projection : Object.freeze({ ...projection, store })));
}

const againMilliseconds = 1000;

/**
 * Maintains a store apart from the log, and logs when it is away. If it did not respond when this process started, its versions are registered
 * as soon as it does.
 */
export function maintainStoreApart(
  options: StoreMaintenanceOptions & {
    /** Undefined if the versions are registered. */
    readonly register: (() => Promise<readonly string[]>) | undefined;
    readonly onRegistered: () => Promise<void>;
  },
): StoreMaintenance {
  const { store, config, register, onRegistered } = options;
  const outages = createOutages(options.logger, { what: `the read store '${store.name}'` });
  const { logger } = outages;
  const watch = createDatabaseWatch({
    appends: store.db,
    reads: store.reads,
    answerTimeoutMs: config.database.answerTimeout,
    readSchema: config.database.readSchema,
    onProblem: (sentence) => logger.error(`the read store '${store.name}' can't be written: ${sentence}`),
    onAnswered: outages.answered,
  });
  let maintenance: StoreMaintenance | undefined;
  const start = () => {
    maintenance = maintainStore({ ...options, logger });
  };
  const registering = register && startPeriodicTask(againMilliseconds, tryToRegister, logRefusal(logger, store));
  if (!register) start();

  async function tryToRegister(): Promise<void> {
    if (maintenance || !register) return;
    for (const warning of await register()) logger.warn(warning);
    await onRegistered();
    start();
  }

  return {
    get tables() {
      return maintenance?.tables;
    },
    problem() {
      const { appends: writes, reads } = watch.problems();
      return writes ?? reads;
    },
    isSilent: watch.isSilent,
    async stop() {
      await registering?.stop();
      await maintenance?.stop();
      await watch.stop();
    },
  };
}

/** Once for each reason: only an operator can change it. */
function logRefusal(logger: Logger, { name }: ReadStore): (error: unknown) => void {
  const logged = new Set<string>();
  return (error) => {
    const text = `the versions of the read store '${name}' can't be registered; trying again. ${reasonOf(error)}`;
    if (isOutage(error)) logger.warn({ err: error }, text);
    else if (!logged.has(text)) logger.error({ err: error }, text);
    logged.add(text);
  };
}
