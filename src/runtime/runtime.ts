import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import { shareConnections } from '../config/connections.ts';
import type { Config } from '../config/define-config.ts';
import type { Maintained } from '../config/maintained.ts';
import { payloadVersionsOf } from '../events/payload-versions.ts';
import type { PositionToken } from '../events/position-token.ts';
import { selfFeedingWarnings } from '../reactors/reaction-chains.ts';
import { declaredVersions } from '../reactors/versioned-reactor.ts';
import { createEventLog, type EventLog } from '../store/event-log.ts';
import { readAnchor } from '../store/log/horizon.ts';
import { createDatabase, type Database } from '../store/postgres/database.ts';
import { createNotifications, type Notifications, noNotifications } from '../store/postgres/notifications.ts';
import { addShadowResult, type ShadowResult } from '../store/registry/shadows.ts';
import { createPollTimer } from '../store/server/poll-timer.ts';
import { checkServer } from '../store/server/server-check.ts';
import { checkSessions } from '../store/server/session-check.ts';
import { createSchemaEvolution, type SchemaEvolution } from './activation/schema-evolution.ts';
import { openApplicationLog } from './commands/application-log.ts';
import { type ExecuteOptions, type ExecuteResult, executeCommand } from './commands/command-handler.ts';
import { createSnapshotWriter } from './commands/snapshot-writer.ts';
import { createStreamTurns } from './commands/stream-turns.ts';
import type { EventSource } from './consumers/event-source.ts';
import { createHistory, type History, historyChanged } from './consumers/history.ts';
import { createLogSource, parseNotifiedPosition } from './consumers/log-source.ts';
import { createLiveReadModels, type LiveReadModelSource } from './live/live-read-models.ts';
import { startMaintenance } from './maintenance.ts';
import { type CanaryRecorder, createCanaryRecorder } from './monitoring/canary-recorder.ts';
import { readStatus, type VersionStatus } from './monitoring/status.ts';
import { createUsageRecorder, type UsageRecorder } from './monitoring/usage-recorder.ts';
import { connectionLimitWarnings } from './ownership/connection-limit.ts';
import { createDatabaseWatch, type DatabaseProblems, type DatabaseWatch } from './ownership/database-watch.ts';
import { createOutages } from './ownership/outages.ts';
import { announcePresence, type ProcessDescription } from './ownership/presence.ts';
import { createReactorOperations, type ReactorOperations } from './reactors/reactor-operations.ts';
import { registerReactors } from './reactors/register-reactors.ts';
import { openReplica } from './reads/open-replica.ts';
import { createPositions, type Positions } from './reads/positions.ts';
import { createReadModels, type ReadModelSource } from './reads/read-models.ts';
import type { Replica } from './reads/replica.ts';
import { createRowHistory } from './reads/row-history.ts';
import { createServedReadModels, type ServedReadModels } from './reads/served-read-models.ts';
import { createRebuilds, type Rebuilds } from './rebuilds/rebuild-requests.ts';
import { createLifecycle, type Lifecycle } from './versions/lifecycle.ts';
import { registerVersions } from './versions/register-versions.ts';
import { createTableWatch } from './versions/table-watch.ts';
import { checkLoggedNames } from './versions/undeclared-events.ts';
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
  /** Undefined if no replica is configured. */
  readonly replica: Replica | undefined;
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
  /** The given logger, except that it counts failures caused by an unreachable database instead of logging each one. */
  readonly logger: Logger;
  /** Stops everything in reverse order of the start. Resolves when everything is released. */
  stop(): Promise<void>;
}

export async function startRuntime(options: RuntimeParts): Promise<Runtime> {
  const { config, url, owner, development, maintained = config } = options;
  const outages = createOutages(options.logger);
  const { logger } = outages;
  const { readSchema, prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = config.database;
  const shares = shareConnections(config);
  const connection = { url, prepare, sessions, answerTimeoutMs };
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const next of stops.splice(0).reverse()) await next();
  };
  try {
    const db = createDatabase({ ...connection, maxConnections: shares.work });
    stops.push(() => db.close());
    await checkServer(db, readSchema);
    await checkSessions(db, { sessions });
    const undeclared = await checkLoggedNames(db, config.families);
    if (undeclared !== undefined) logger.warn(undeclared);
    const warnings = await registerVersions({ db, readSchema, declarations: config, actor: owner, development });
    warnings.push(...selfFeedingWarnings(config.reactors), ...(await connectionLimitWarnings(db, config.database)));
    warnings.push(...(await registerReactors(db, config.reactors, owner)));
    for (const warning of warnings) logger.warn(warning);

    let watch: DatabaseWatch | undefined;
    const appends = openApplicationLog(db, config, {
      freeze: development,
      logger: options.logger,
      onAppended: (position) => source.appended(position),
      onSent: (error) => watch?.appended(error),
    });
    stops.push(() => appends.close());
    const { log } = appends;
    const snapshots = createSnapshotWriter(db, (error) =>
      logger.error({ err: error }, `a snapshot of a stream was not kept. ${String(error)}`),
    );
    stops.push(() => snapshots.stop());
    const turns = createStreamTurns();
    const notifications = sessions ? createNotifications({ url, answerTimeoutMs }) : noNotifications;
    stops.push(() => notifications.close());
    const { min, max, step, jitter } = config.runtime.polling;
    const pollTimer = createPollTimer({
      minMs: min,
      maxMs: max,
      stepMs: step,
      jitter,
    });
    stops.push(async () => pollTimer.wake());
    const history = createHistory(logger);
    const source = createLogSource(log, pollTimer, history);
    const unsubscribe = notifications.on('refold_events', (payload) => source.appended(parseNotifiedPosition(payload)));
    stops.push(async () => unsubscribe());
    const versions = await createVersions({
      db,
      projections: config.projections,
      notifications,
      onError: (error) => logger.warn({ err: error }, 'the registry could not be read; trying again'),
    });
    stops.push(() => versions.close());
    const lifecycle = createLifecycle(db, readSchema, config);

    // Reads have their own pool: slow queries must not take the connections that appends and batches need.
    const reads = createDatabase({
      ...connection,
      maxConnections: shares.reads,
      pipeline: sessions,
      statementTimeoutMs: config.gateway.statementTimeout,
      applicationName: 'refold-reads',
    });
    stops.push(() => reads.close());
    const opened = createDatabaseWatch({ appends: appends.db, reads, answerTimeoutMs, onAnswered: outages.answered });
    watch = opened;
    stops.push(() => opened.stop());
    const positions = createPositions({
      db: reads,
      notifications,
      timeout: config.gateway.positionTimeout,
      head: () => log.head(),
    });
    stops.push(async () => positions.close());
    // A version that starts again is behind the positions seen so far, and possibly no notification reports it.
    versions.onChange(() => positions.forget());
    history.onChange(() => positions.forget());
    const replica = openReplica(config, db, logger);
    if (replica) stops.push(() => replica.close());
    history.onChange(() => replica?.forget());
    const readModels = createReadModels({
      replica,
      db: reads,
      readSchema,
      statementTimeout: config.gateway.statementTimeout,
      positions,
      versions,
      history: createRowHistory(reads, createEventLog(reads, config.families)),
    });

    const live = createLiveReadModels({
      db: reads,
      readSchema,
      versions,
      positions,
      history,
      onError: (error) => logger.warn({ err: error }, 'subscriptions wait for the database'),
    });
    stops.push(() => live.close());

    const usage = options.serves ? createUsageRecorder({ db, usage: config.gateway.fieldUsage, logger }) : undefined;
    if (usage) stops.push(() => usage.stop());
    const canaries = options.serves ? createCanaryRecorder(db, logger) : undefined;
    if (canaries) stops.push(() => canaries.stop());

    const { projections } = config;
    const readModelsServed = options.serves ? createServedReadModels({ db, projections, versions, logger }) : undefined;
    if (readModelsServed) stops.push(() => readModelsServed.stop());

    const described: ProcessDescription = {
      name: owner,
      role: options.maintain ? (options.serves ? 'all' : 'worker') : 'gateway',
      versions: (options.serves ? config : maintained).projections.map(({ id }) => id),
      payloadVersions: payloadVersionsOf(config.families),
      reactorVersions: declaredVersions(config.reactors),
    };
    const tables = options.maintain ? createTableWatch({ db, projections: config.projections, logger }) : undefined;
    if (tables) {
      stops.push(() => tables.stop());
      const parts = { db, log, source, history, versions, positions, lifecycle, tables };
      stops.push(startMaintenance({ config, maintained, url, owner, development, ...parts, logger, described }));
    } else if (options.serves) {
      const presence = announcePresence(db, described, logger);
      stops.push(() => presence.stop());
    }

    return {
      db,
      log,
      source,
      history,
      notifications,
      versions,
      lifecycle,
      schemaEvolution: createSchemaEvolution(db, config, () => usage?.flush()),
      reactors: createReactorOperations(db, log),
      rebuilds: createRebuilds({ db, log, readSchema, projections: config.projections }),
      positions,
      readModels,
      replica,
      live,
      async checkToken({ position, anchor }) {
        const now = await readAnchor(reads, position);
        history.note(now.serverStart);
        // This is no proof that the log was cut: a client may send any token.
        if (now.anchor !== anchor) throw historyChanged(position);
      },
      recordShadow: (result) => addShadowResult(db, result, shadowExamples),
      canaries,
      readModelsServed,
      usage,
      execute: (command, input, executeOptions) =>
        executeCommand(log, command, input, executeOptions, { snapshots, forClients: true, turns }),
      lookAtTables: () => tables?.soon(),
      async status() {
        await canaries?.flush();
        return readStatus(db, log);
      },
      problems: opened.problems,
      logger,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
