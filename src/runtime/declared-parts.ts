import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../config/define-config.ts';
import type { Maintained } from '../config/maintained.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Database } from '../store/postgres/database.ts';
import type { Notifications } from '../store/postgres/notifications.ts';
import type { ReadStore, ReadStores } from '../store/read-store.ts';
import type { PollTimer } from '../store/server/poll-timer.ts';
import { createSchemaEvolution, type SchemaEvolution } from './activation/schema-evolution.ts';
import { openApplicationLog } from './commands/application-log.ts';
import { type ExecuteOptions, type ExecuteResult, executeCommand } from './commands/command-handler.ts';
import { createLongStreamLog } from './commands/long-streams.ts';
import type { SnapshotWriter } from './commands/snapshot-writer.ts';
import type { StreamTurns } from './commands/stream-turns.ts';
import type { EventSource } from './consumers/event-source.ts';
import type { History } from './consumers/history.ts';
import { createLogSource, parseNotifiedPosition } from './consumers/log-source.ts';
import type { UsageRecorder } from './monitoring/usage-recorder.ts';
import type { WorkMetrics } from './monitoring/work-metrics.ts';
import { createDatabaseWatch, type DatabaseProblems, type DatabaseWatch } from './ownership/database-watch.ts';
import type { Outages } from './ownership/outages.ts';
import { type DescribedProcess, describeProcess } from './ownership/presence.ts';
import { createReactorOperations, type ReactorOperations } from './reactors/reactor-operations.ts';
import type { Positions } from './reads/positions.ts';
import { createReadModels, type ReadModelSource } from './reads/read-models.ts';
import type { Replica } from './reads/replica.ts';
import { createRowHistory } from './reads/row-history.ts';
import { createServedReadModels, type ServedReadModels } from './reads/served-read-models.ts';
import { createRebuilds, type Rebuilds } from './rebuilds/rebuild-requests.ts';
import { registerInStore } from './register-declarations.ts';
import { createSharedRun } from './scheduling/shared-run.ts';
import { createSlowEvents } from './scheduling/slow-events.ts';
import { maintainStore, maintainStoreApart } from './store-maintenance.ts';
import { readsOfStores } from './stores/reads-of-stores.ts';
import { createStoreFinder, lifecycleOfStores, type StoreFinder } from './stores/steps-of-stores.ts';
import { knownWhenDone } from './versions/known-steps.ts';
import { createLifecycle, type Lifecycle } from './versions/lifecycle.ts';
import { leaveDamaged } from './versions/table-watch.ts';
import type { Versions } from './versions/versions.ts';

/** What a process has once, whatever it declares. */
export interface SharedParts extends DescribedProcess {
  /** The pool of the log's database, whose store is the first of `stores`. */
  readonly db: Database;
  readonly stores: ReadStores;
  readonly development: boolean;
  readonly logger: Logger;
  /** Reports what inline projections leave out, even during an outage. */
  readonly appendLogger: Logger;
  readonly outages: Outages;
  /** The pool of reads. */
  readonly reads: Database;
  /** By the name of the store. */
  readonly positionsIn: ReadonlyMap<string, Positions>;
  readonly positions: Positions;
  /** By the name of the store. */
  readonly replicas: ReadonlyMap<string, Replica>;
  readonly versions: Versions;
  readonly usage: UsageRecorder | undefined;
  readonly snapshots: SnapshotWriter;
  readonly turns: StreamTurns;
  readonly notifications: Notifications;
  readonly pollTimer: PollTimer;
  readonly history: History;
  readonly metrics: WorkMetrics | undefined;
}

/** Why read stores do not respond, by their names. A store that responds is left out. */
export type StoreProblems = Readonly<Record<string, string>>;

/** What of a process depends on its declarations. `refold dev` replaces it when they change. */
export interface DeclaredParts {
  readonly log: EventLog;
  readonly source: EventSource;
  /** Finds the store of a version. */
  readonly find: StoreFinder;
  readonly lifecycle: Lifecycle;
  readonly schemaEvolution: SchemaEvolution;
  readonly reactors: ReactorOperations;
  readonly rebuilds: Rebuilds;
  readonly readModels: ReadModelSource;
  /** Undefined if the process answers no clients. */
  readonly readModelsServed: ServedReadModels | undefined;
  execute(command: Command, input: unknown, options?: ExecuteOptions): Promise<ExecuteResult>;
  lookAtTables(): void;
  problems(): DatabaseProblems;
  /** Why read stores can't be used at present, by their names. */
  storeProblems(): StoreProblems;
  /** The read stores that do not respond at present. */
  silentStores(): ReadonlySet<string>;
  /** Starts what this process does for its declarations without being asked. `late`: stores whose versions are not registered yet. */
  maintain(late: ReadonlySet<ReadStore>): void;
  stopMaintaining(): Promise<void>;
  /** Waits for running commands, and releases the rest. */
  close(): Promise<void>;
}

export function declareParts(shared: SharedParts, config: Config, maintained: Maintained = config): DeclaredParts {
  const { db, stores, reads, history, notifications, snapshots, turns, development, metrics } = shared;
  const { readSchema } = config.database;
  const noteLength = createLongStreamLog(shared.logger);
  const appends = openApplicationLog(db, config, {
    unlessStalled: (write) => watch.stalled.run(write),
    freeze: development,
    logger: shared.appendLogger,
    onAppended: (position) => source.appended(position),
    leaveDamaged: createSharedRun(async () => {
      maintenance?.lookAtTables();
      await leaveDamaged(db, config.projections);
    }).run,
    onSent: (sent) => {
      metrics?.sent(sent);
      watch.appended(sent.error);
    },
    onFolded: (folded) => {
      metrics?.folded(folded);
      noteLength(folded);
    },
    slowEvents: createSlowEvents(shared.logger, metrics?.slowEvent),
  });
  const { log } = appends;
  metrics?.pools({ work: db, ...(appends.db === db ? {} : { appends: appends.db }), reads, ...poolsOf(stores) });
  const source = createLogSource(log, shared.pollTimer, history);
  const unsubscribe = notifications.on('refold_events', (payload) => source.appended(parseNotifiedPosition(payload)));
  const watch: DatabaseWatch = createDatabaseWatch({
    appends: appends.db,
    reads,
    answerTimeoutMs: config.database.answerTimeout,
    readSchema,
    onProblem: (sentence) => shared.appendLogger.error(`appends can't be written: ${sentence}`),
    onAnswered: shared.outages.answered,
  });
  const find = createStoreFinder(stores, config);
  const lifecycle = knownWhenDone(
    lifecycleOfStores(stores, find, (store) => createLifecycle(store.db, readSchema, config)),
    {
      refresh: shared.versions.refresh,
      onError: (err) =>
        shared.logger.warn({ err }, 'the registry could not be read after a step of an operator; trying again'),
    },
  );
  const running = createRunningCount();
  let maintenance: Maintenance | undefined;
  return {
    log,
    source,
    find,
    lifecycle,
    schemaEvolution: createSchemaEvolution({
      db,
      dbOf: async (name, version) => (await find.of(name, version)).db,
      declarations: config,
      flush: () => shared.usage?.flush(),
    }),
    reactors: createReactorOperations(db, log),
    rebuilds: createRebuilds({
      dbOf: (projection) => stores.of(shared.versions.stored(projection)).db,
      log,
      readSchema,
      projections: config.projections,
    }),
    readModels: createStoreReads(shared, config),
    get readModelsServed() {
      return maintenance?.readModelsServed;
    },
    async execute(command, input, options) {
      const work = () => executeCommand(log, command, input, options, { snapshots, forClients: true, turns });
      running.begin();
      try {
        return await (metrics ? metrics.command(command.name, work) : work());
      } finally {
        running.end();
      }
    },
    lookAtTables: () => maintenance?.lookAtTables(),
    problems: watch.problems,
    storeProblems: () => maintenance?.storeProblems() ?? {},
    silentStores: () => maintenance?.silentStores() ?? new Set(),
    maintain(late) {
      maintenance = maintainDeclared({ ...shared, log, source, lifecycle, late }, config, maintained);
    },
    async stopMaintaining() {
      await maintenance?.stop();
      maintenance = undefined;
    },
    async close() {
      await running.none();
      unsubscribe();
      await watch.stop();
      await appends.close();
    },
  };
}

/** Counts commands that are under way, to wait for their end. */
function createRunningCount() {
  let count = 0;
  let onNone = () => {};
  return {
    begin: () => void count++,
    end() {
      if (--count === 0) onNone();
    },
    none() {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (count === 0) resolve();
      onNone = resolve;
      return promise;
    },
  };
}

/** The pools of stores apart from the log, under names for metrics. */
function poolsOf({ apart }: ReadStores): Readonly<Record<string, Database>> {
  return Object.fromEntries(
    apart.flatMap(({ name, db, reads }) => [
      [`work-${name}`, db],
      [`reads-${name}`, reads],
    ]),
  );
}

function createStoreReads(
  { stores, positionsIn, positions, versions, replicas }: SharedParts,
  { database, gateway }: Config,
): ReadModelSource {
  // The history of a row is folded from the log, whatever store holds the row.
  const sources = [stores.home, ...stores.apart].map(({ name, reads }): [string, ReadModelSource] => [
    name,
    createReadModels({
      replica: replicas.get(name),
      db: reads,
      readSchema: database.readSchema,
      statementTimeout: gateway.statementTimeout,
      positions: positionsIn.get(name) ?? positions,
      versions: versions.in(name),
      history: createRowHistory(reads, stores.home.reads),
    }),
  ]);
  return readsOfStores({ sources: new Map(sources), across: gateway.acrossStores });
}

interface Maintenance {
  readonly readModelsServed: ServedReadModels | undefined;
  lookAtTables(): void;
  storeProblems(): StoreProblems;
  silentStores(): ReadonlySet<string>;
  stop(): Promise<void>;
}

type MaintainedParts = SharedParts &
  Pick<DeclaredParts, 'log' | 'source' | 'lifecycle'> & { readonly late: ReadonlySet<ReadStore> };

function maintainDeclared(parts: MaintainedParts, config: Config, maintained: Maintained): Maintenance {
  const { db, stores, owner, development, maintain, serves, versions, logger, late } = parts;
  const { log, source, lifecycle, history, positions } = parts;
  const { projections, database } = config;
  const readModelsServed = serves ? createServedReadModels({ db, projections, versions, logger }) : undefined;
  const described = describeProcess(parts, config, maintained);
  const options = {
    ...{ config, maintained, owner, development, described, maintain, serves },
    ...{ stores, log, source, history, versions, positions, lifecycle, metrics: parts.metrics },
  };
  const registration = { readSchema: database.readSchema, actor: owner, development, described };
  const maintenances = [
    maintainStore({ ...options, store: stores.home, logger }),
    ...stores.apart.map((store) =>
      maintainStoreApart({
        ...options,
        store,
        logger: parts.appendLogger,
        register: late.has(store) ? () => registerInStore(store, config, registration) : undefined,
        onRegistered: () => versions.refresh(),
      }),
    ),
  ];
  return {
    readModelsServed,
    lookAtTables: () => maintenances.map(({ tables }) => tables?.soon()),
    storeProblems() {
      const problems = stores.apart.map(({ name }, index) => [name, maintenances[index + 1]?.problem()] as const);
      return Object.fromEntries(problems.filter((one): one is readonly [string, string] => one[1] !== undefined));
    },
    silentStores: () =>
      new Set(stores.apart.filter((_, index) => maintenances[index + 1]?.isSilent()).map(({ name }) => name)),
    async stop() {
      await Promise.all(maintenances.map((one) => one.stop()));
      await readModelsServed?.stop();
    },
  };
}
