import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../config/define-config.ts';
import type { Maintained } from '../config/maintained.ts';
import type { PositionToken } from '../events/position-token.ts';
import { defaultStore } from '../projections/projection/projection.ts';
import type { EventLog } from '../store/event-log.ts';
import { readAnchor } from '../store/log/horizon.ts';
import type { Database } from '../store/postgres/database.ts';
import { isTableError } from '../store/postgres/database-errors.ts';
import type { Notifications } from '../store/postgres/notifications.ts';
import type { ReadStore, ReadStores } from '../store/read-store.ts';
import { addShadowResult, type ShadowResult } from '../store/registry/shadows.ts';
import { createPollTimer } from '../store/server/poll-timer.ts';
import { checkServer } from '../store/server/server-check.ts';
import { checkSessions } from '../store/server/session-check.ts';
import { reasonOf } from '../thrown.ts';
import type { SchemaEvolution } from './activation/schema-evolution.ts';
import type { ExecuteOptions, ExecuteResult } from './commands/command-handler.ts';
import { createSnapshotWriter } from './commands/snapshot-writer.ts';
import { createStreamTurns } from './commands/stream-turns.ts';
import type { EventSource } from './consumers/event-source.ts';
import { createHistory, type History, historyChanged } from './consumers/history.ts';
import { type DeclaredParts, declareParts, type SharedParts, type StoreProblems } from './declared-parts.ts';
import { createLiveReadModels, type LiveReadModelSource } from './live/live-read-models.ts';
import { type CanaryRecorder, createCanaryRecorder } from './monitoring/canary-recorder.ts';
import { readStatusOfStores, type VersionStatus } from './monitoring/status.ts';
import { createUsageRecorder, type UsageRecorder } from './monitoring/usage-recorder.ts';
import type { WorkMetrics } from './monitoring/work-metrics.ts';
import type { DatabaseProblems } from './ownership/database-watch.ts';
import { createOutages } from './ownership/outages.ts';
import type { ReactorOperations } from './reactors/reactor-operations.ts';
import { openReplicas } from './reads/open-replicas.ts';
import { createPositions, type Positions } from './reads/positions.ts';
import type { ReadModelSource } from './reads/read-models.ts';
import type { Replica } from './reads/replica.ts';
import type { ServedReadModels } from './reads/served-read-models.ts';
import type { Rebuilds } from './rebuilds/rebuild-requests.ts';
import { explainStores, registerDeclarations } from './register-declarations.ts';
import { openStores } from './stores/open-stores.ts';
import { positionsOfStores } from './stores/positions-of-stores.ts';
import { createStoreFinder, type StoreFinder } from './stores/steps-of-stores.ts';
import type { Lifecycle } from './versions/lifecycle.ts';
import { createVersions, type Versions } from './versions/versions.ts';

// More examples than anybody reads would only take space.
const shadowExamples = 50;

export interface RuntimeParts {
  readonly config: Config;
  readonly url: string;
  /** Identifies this process in the registry and the audit log, for example `host:4711`. */
  readonly owner: string;
  readonly development: boolean;
  /** Whether this process maintains read tables; otherwise it only reads them. */
  readonly maintain: boolean;
  /** What it maintains. @default everything that is declared */
  readonly maintained?: Maintained;
  /** Whether this process answers clients. If so, it records which fields they request. @default false */
  readonly serves?: boolean;
  readonly logger: Logger;
  /** Measures what this process does. @default nothing is measured */
  readonly metrics?: WorkMetrics;
}

/** One process of an application: its log, its view of the versions, its reads, and the read tables that it maintains. */
export interface Runtime {
  readonly db: Database;
  readonly log: EventLog;
  /** The log as consumers read it. */
  readonly source: EventSource;
  readonly history: History;
  readonly notifications: Notifications;
  readonly versions: Versions;
  readonly lifecycle: Lifecycle;
  readonly schemaEvolution: SchemaEvolution;
  readonly reactors: ReactorOperations;
  readonly rebuilds: Rebuilds;
  readonly positions: Positions;
  readonly readModels: ReadModelSource;
  /** Those that are configured, by the names of their read stores. */
  readonly replicas: ReadonlyMap<string, Replica>;
  readonly live: LiveReadModelSource;
  /** Throws RefoldError `HISTORY_CHANGED` if the log's events changed since the position was issued, for example after a restore. */
  checkToken(token: PositionToken): Promise<void>;
  /** Stores the result of comparing two versions' responses. */
  recordShadow(result: ShadowResult): Promise<void>;
  /** Undefined if the process answers no clients. */
  readonly canaries: CanaryRecorder | undefined;
  /** Undefined if the process answers no clients. */
  readonly readModelsServed: ServedReadModels | undefined;
  /** Undefined if the process answers no clients. */
  readonly usage: UsageRecorder | undefined;
  execute(command: Command, input: unknown, options?: ExecuteOptions): Promise<ExecuteResult>;
  /** Call it when a statement failed because of the table that it read. If this process maintains read tables, it checks them soon. */
  lookAtTables(): void;
  status(): Promise<VersionStatus[]>;
  /** Why appends or reads cannot reach the database at present. */
  problems(): DatabaseProblems;
  /** Why read stores apart from the log can't be used at present, by their names. */
  storeProblems(): StoreProblems;
  readonly stores: ReadStores;
  readonly find: StoreFinder;
  /** The given logger, except that it counts failures caused by an unreachable database instead of logging each one. */
  readonly logger: Logger;
  /**
   * Replaces the declarations while the process runs. Subscriptions stay open and follow the new declarations, as they follow an
   * activation. Connections keep their options: `database`, `gateway` and `runtime` of the new configuration are not read.
   *
   * @param onDeclared called when the new declarations are registered, before the first operation on them
   * @returns warnings for the operator, as sentences
   * @throws what a start would throw; then the former declarations stay in force
   */
  redeclare(config: Config, onDeclared: () => void): Promise<string[]>;
  /** Stops everything in reverse order of the start. Resolves when everything is released. */
  stop(): Promise<void>;
}

export async function startRuntime(options: RuntimeParts): Promise<Runtime> {
  const { config, url, owner, development, maintain, maintained = config, serves = false, metrics } = options;
  const outages = createOutages(options.logger);
  const { logger } = outages;
  const { readSchema, notifications: sessions } = config.database;
  const process = { id: crypto.randomUUID(), owner, development, maintain, serves, logger, outages, metrics };
  let declaredNow = config;
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const next of stops.splice(0).reverse()) await next();
  };
  try {
    const databases = openStores(config, url);
    stops.push(() => databases.close());
    const { db, reads, notifications, stores, links } = databases;
    await checkServer(db, readSchema);
    await checkSessions(db, { sessions });
    if (stores.apart.length > 0) {
      const registered = createStoreFinder(stores, config).versions();
      links.found(await registered.catch((error: unknown) => explainStores(stores, readSchema, error)));
    }
    const registration = { db, stores, readSchema, actor: owner, development, process, maintained };
    const { warnings, late } = await registerDeclarations(config, registration);
    for (const warning of warnings) logger.warn(warning);

    const snapshots = createSnapshotWriter(db, (error) =>
      logger.error({ err: error }, `a snapshot of a stream was not kept. ${reasonOf(error)}`),
    );
    stops.push(() => snapshots.stop());
    const turns = createStreamTurns();
    const { min, max, step, jitter } = config.runtime.polling;
    const pollTimer = createPollTimer({ minMs: min, maxMs: max, stepMs: step, jitter });
    stops.push(async () => pollTimer.wake());
    const history = createHistory(logger);
    const versions = await createVersions({
      stores: [stores.home, ...stores.apart],
      projections: config.projections,
      onError: (error) => logger.warn({ err: error }, 'the registry could not be read; trying again'),
    });
    stops.push(() => versions.close());
    versions.onChange(() => links.found(versions.registries()));

    const positionsIn = new Map(
      [stores.home, ...stores.apart].map((store) => [
        store.name,
        createPositions({
          db: store.reads,
          notifications: store.notifications,
          timeout: config.gateway.positionTimeout,
          head: () => declared.log.head(),
        }),
      ]),
    );
    const positions = positionsOfStores(positionsIn);
    stops.push(async () => positions.close());
    // A version that starts again is behind the positions seen so far, and possibly no notification reports it.
    versions.onChange(() => positions.forget());
    history.onChange(() => positions.forget());
    const replicas = openReplicas(config, stores, logger);
    stops.push(() => replicas.close());
    history.onChange(() => replicas.forget());
    const live = createLiveReadModels({
      db: reads,
      dbOf: (projection) => stores.of(projection).reads,
      readSchema,
      versions,
      positions,
      history,
      onError(error) {
        logger.warn({ err: error }, 'subscriptions wait for the database');
        if (!isTableError(error)) return;
        declared.lookAtTables();
        void versions.refresh().catch(() => {}); // the error was logged
      },
    });
    stops.push(() => live.close());

    /** The database of a declared version. */
    const dbOf = ({ name, version }: { readonly name: string; readonly version: number }) => {
      const declared = declaredNow.projections.find((one) => one.name === name && one.version === version);
      return stores.of(declared ? versions.stored(declared) : { store: defaultStore }).db;
    };
    const usage = serves ? createUsageRecorder({ db, usage: config.gateway.fieldUsage, logger }) : undefined;
    if (usage) stops.push(() => usage.stop());
    const canaries = serves ? createCanaryRecorder(dbOf, logger) : undefined;
    if (canaries) stops.push(() => canaries.stop());

    const reading = { reads, positionsIn, positions, replicas: replicas.byStore, versions, usage };
    const writing = { snapshots, turns, notifications, pollTimer, history, appendLogger: options.logger };
    const shared: SharedParts = { ...process, ...reading, ...writing, db, stores };
    let declared: DeclaredParts = declareParts(shared, config, maintained);
    stops.push(() => declared.close());
    declared.maintain(late);
    stops.push(() => declared.stopMaintaining());

    return {
      db,
      history,
      notifications,
      versions,
      positions,
      replicas: replicas.byStore,
      live,
      canaries,
      usage,
      logger,
      stop,
      get log() {
        return declared.log;
      },
      get source() {
        return declared.source;
      },
      get find() {
        return declared.find;
      },
      get lifecycle() {
        return declared.lifecycle;
      },
      get schemaEvolution() {
        return declared.schemaEvolution;
      },
      get reactors() {
        return declared.reactors;
      },
      get rebuilds() {
        return declared.rebuilds;
      },
      get readModels() {
        return declared.readModels;
      },
      get readModelsServed() {
        return declared.readModelsServed;
      },
      async checkToken({ position, anchor }) {
        const now = await readAnchor(reads, position);
        history.note(now.serverStart);
        // This is no proof that the log was cut: a client may send any token.
        if (now.anchor !== anchor) throw historyChanged(position);
      },
      recordShadow: (result) => addShadowResult(dbOf(result), result, shadowExamples),
      execute: (command, input, executeOptions) => declared.execute(command, input, executeOptions),
      lookAtTables: () => declared.lookAtTables(),
      async status() {
        await canaries?.flush();
        const status = await readStatusOfStores(stores, declared.log);
        // This process answers with what it reports as active, even if it has not been notified yet.
        await versions.refresh();
        return [...status.versions];
      },
      problems: () => declared.problems(),
      storeProblems: () => declared.storeProblems(),
      stores: { ...stores, silent: () => declared.silentStores() },
      async redeclare(next, onDeclared) {
        const former = declared;
        await former.stopMaintaining();
        let silent: ReadonlySet<ReadStore> = new Set();
        try {
          links.declare(next.projections);
          const { warnings, late } = await registerDeclarations(next, { ...registration, maintained: next });
          silent = late;
          declaredNow = next;
          declared = declareParts(shared, next);
          onDeclared();
          await versions.redeclare(next.projections);
          return [...warnings];
        } catch (error) {
          links.declare(declaredNow.projections);
          throw error;
        } finally {
          declared.maintain(silent);
          if (declared !== former) await former.close();
        }
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
