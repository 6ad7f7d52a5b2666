import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../config/define-config.ts';
import type { Maintained } from '../config/maintained.ts';
import { payloadVersionsOf } from '../events/payload-versions.ts';
import { selfFeedingWarnings } from '../reactors/reaction-chains.ts';
import { declaredVersions } from '../reactors/versioned-reactor.ts';
import { createEventLog, type EventLog } from '../store/event-log.ts';
import type { Database } from '../store/postgres/database.ts';
import type { Notifications } from '../store/postgres/notifications.ts';
import type { PollTimer } from '../store/server/poll-timer.ts';
import { createSchemaEvolution, type SchemaEvolution } from './activation/schema-evolution.ts';
import { openApplicationLog } from './commands/application-log.ts';
import { type ExecuteOptions, type ExecuteResult, executeCommand } from './commands/command-handler.ts';
import type { SnapshotWriter } from './commands/snapshot-writer.ts';
import type { StreamTurns } from './commands/stream-turns.ts';
import type { EventSource } from './consumers/event-source.ts';
import type { History } from './consumers/history.ts';
import { createLogSource, parseNotifiedPosition } from './consumers/log-source.ts';
import { startMaintenance } from './maintenance.ts';
import type { UsageRecorder } from './monitoring/usage-recorder.ts';
import type { WorkMetrics } from './monitoring/work-metrics.ts';
import { connectionLimitWarnings } from './ownership/connection-limit.ts';
import { createDatabaseWatch, type DatabaseProblems, type DatabaseWatch } from './ownership/database-watch.ts';
import type { Outages } from './ownership/outages.ts';
import { announcePresence, type ProcessDescription } from './ownership/presence.ts';
import { createReactorOperations, type ReactorOperations } from './reactors/reactor-operations.ts';
import { registerReactors } from './reactors/register-reactors.ts';
import type { Positions } from './reads/positions.ts';
import { createReadModels, type ReadModelSource } from './reads/read-models.ts';
import type { Replica } from './reads/replica.ts';
import { createRowHistory } from './reads/row-history.ts';
import { createServedReadModels, type ServedReadModels } from './reads/served-read-models.ts';
import { createRebuilds, type Rebuilds } from './rebuilds/rebuild-requests.ts';
import { createLifecycle, type Lifecycle } from './versions/lifecycle.ts';
import { type RegisterOptions, registerVersions } from './versions/register-versions.ts';
import { createTableWatch, type TableWatch } from './versions/table-watch.ts';
import { checkLoggedNames } from './versions/undeclared-events.ts';
import type { Versions } from './versions/versions.ts';

/** What a process has once, whatever it declares. */
export interface SharedParts {
  readonly db: Database;
  readonly url: string;
  readonly owner: string;
  readonly development: boolean;
  readonly maintain: boolean;
  readonly serves: boolean;
  readonly logger: Logger;
  /** Reports what inline projections leave out, even during an outage. */
  readonly appendLogger: Logger;
  readonly outages: Outages;
  /** The pool of reads. */
  readonly reads: Database;
  readonly positions: Positions;
  readonly replica: Replica | undefined;
  readonly versions: Versions;
  readonly usage: UsageRecorder | undefined;
  readonly snapshots: SnapshotWriter;
  readonly turns: StreamTurns;
  readonly notifications: Notifications;
  readonly pollTimer: PollTimer;
  readonly history: History;
  readonly metrics: WorkMetrics | undefined;
}

/** What of a process depends on its declarations. `refold dev` replaces it when they change. */
export interface DeclaredParts {
  readonly log: EventLog;
  readonly source: EventSource;
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
  /** Starts what this process does for its declarations without being asked. */
  maintain(): void;
  stopMaintaining(): Promise<void>;
  /** Waits for running commands, and releases the rest. */
  close(): Promise<void>;
}

/**
 * Compares the declarations with the registry, and registers what is new.
 *
 * @returns warnings for the operator, as sentences.
 */
export async function registerDeclarations(
  config: Config,
  registration: Omit<RegisterOptions, 'declarations'>,
): Promise<string[]> {
  const { db, actor } = registration;
  const undeclared = await checkLoggedNames(db, config.families);
  return [
    ...(undeclared === undefined ? [] : [undeclared]),
    ...(await registerVersions({ ...registration, declarations: config })),
    ...selfFeedingWarnings(config.reactors),
    ...(await connectionLimitWarnings(db, config.database)),
    ...(await registerReactors(db, config.reactors, actor)),
  ];
}

export function declareParts(shared: SharedParts, config: Config, maintained: Maintained = config): DeclaredParts {
  const { db, reads, versions, positions, history, notifications, snapshots, turns, development, metrics } = shared;
  const { readSchema } = config.database;
  const appends = openApplicationLog(db, config, {
    freeze: development,
    logger: shared.appendLogger,
    onAppended: (position) => source.appended(position),
    onSent: (sent) => {
      metrics?.sent(sent);
      watch.appended(sent.error);
    },
  });
  const { log } = appends;
  metrics?.pools({ work: db, ...(appends.db === db ? {} : { appends: appends.db }), reads });
  const source = createLogSource(log, shared.pollTimer, history);
  const unsubscribe = notifications.on('refold_events', (payload) => source.appended(parseNotifiedPosition(payload)));
  const watch: DatabaseWatch = createDatabaseWatch({
    appends: appends.db,
    reads,
    answerTimeoutMs: config.database.answerTimeout,
    onAnswered: shared.outages.answered,
  });
  const lifecycle = createLifecycle(db, readSchema, config);
  const running = createRunningCount();
  let maintenance: Maintenance | undefined;
  return {
    log,
    source,
    lifecycle,
    schemaEvolution: createSchemaEvolution(db, config, () => shared.usage?.flush()),
    reactors: createReactorOperations(db, log),
    rebuilds: createRebuilds({ db, log, readSchema, projections: config.projections }),
    readModels: createReadModels({
      replica: shared.replica,
      db: reads,
      readSchema,
      statementTimeout: config.gateway.statementTimeout,
      positions,
      versions,
      history: createRowHistory(reads, createEventLog(reads, config.families)),
    }),
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
    lookAtTables: () => maintenance?.tables?.soon(),
    problems: watch.problems,
    maintain() {
      maintenance = maintainDeclared({ ...shared, log, source, lifecycle }, config, maintained);
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

interface Maintenance {
  readonly readModelsServed: ServedReadModels | undefined;
  readonly tables: TableWatch | undefined;
  stop(): Promise<void>;
}

type MaintainedParts = SharedParts & Pick<DeclaredParts, 'log' | 'source' | 'lifecycle'>;

function maintainDeclared(parts: MaintainedParts, config: Config, maintained: Maintained): Maintenance {
  const { db, url, owner, development, serves, versions, logger } = parts;
  const { log, source, lifecycle, history, positions } = parts;
  const { projections, families, reactors } = config;
  const readModelsServed = serves ? createServedReadModels({ db, projections, versions, logger }) : undefined;
  const described: ProcessDescription = {
    name: owner,
    role: parts.maintain ? (serves ? 'all' : 'worker') : 'gateway',
    versions: (serves ? config : maintained).projections.map(({ id }) => id),
    payloadVersions: payloadVersionsOf(families),
    reactorVersions: declaredVersions(reactors),
  };
  const tables = parts.maintain ? createTableWatch({ db, projections, logger }) : undefined;
  const stopWork = tables
    ? startMaintenance({
        ...{ config, maintained, url, owner, development, logger, described },
        ...{ db, log, source, history, versions, positions, lifecycle, tables, timed: parts.metrics?.timed },
      })
    : undefined;
  const presence = !tables && serves ? announcePresence(db, described, logger) : undefined;
  return {
    readModelsServed,
    tables,
    async stop() {
      await stopWork?.();
      await presence?.stop();
      await tables?.stop();
      await readModelsServed?.stop();
    },
  };
}
