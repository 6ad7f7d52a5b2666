import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../define-config.ts';
import { createAdvisoryOwnership } from '../store/advisory-ownership.ts';
import { createDatabase, type Database } from '../store/database.ts';
import { createEventLog, type EventLog } from '../store/event-log.ts';
import { createLeaseOwnership } from '../store/lease-ownership.ts';
import { createNotifications, type Notifications, noNotifications } from '../store/notifications.ts';
import { checkServer } from '../store/server-check.ts';
import { createWaker } from '../store/waker.ts';
import { type ExecuteOptions, type ExecuteResult, executeCommand } from './command-handler.ts';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import { createLiveReadModels, type LiveReadModelSource } from './live-read-models.ts';
import { createLogSource } from './log-source.ts';
import { createPositions, type Positions } from './positions.ts';
import { createReadModels, type ReadModelSource } from './read-models.ts';
import { registerVersions } from './register-versions.ts';
import { readStatus, type VersionStatus } from './status.ts';
import { createVersions, type Versions } from './versions.ts';
import { createWorker } from './worker.ts';

export interface RuntimeOptions {
  readonly config: Config;
  readonly url: string;
  /** Names this process in the registry and the audit log, such as `host:4711`. */
  readonly owner: string;
  readonly development: boolean;
  /** Whether this process maintains read tables, or only reads them. */
  readonly maintain: boolean;
  readonly logger: Logger;
}

/** One process's part in an application: its log, its view of the versions, its reads, and the read tables that it keeps current. */
export interface Runtime {
  readonly db: Database;
  readonly log: EventLog;
  readonly notifications: Notifications;
  readonly versions: Versions;
  readonly lifecycle: Lifecycle;
  readonly positions: Positions;
  readonly readModels: ReadModelSource;
  readonly live: LiveReadModelSource;
  execute(command: Command, input: unknown, options?: ExecuteOptions): Promise<ExecuteResult>;
  status(): Promise<VersionStatus[]>;
  /** Stops in reverse order of the start; resolves when everything is let go of. */
  stop(): Promise<void>;
}

export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { config, url, owner, logger } = options;
  const { readSchema, maxConnections, prepare, notifications: sessions } = config.database;
  const connection = { url, maxConnections, prepare, sessions };
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const next of stops.splice(0).reverse()) await next();
  };
  try {
    const db = createDatabase(connection);
    stops.push(() => db.close());
    await checkServer(db);
    const warnings = await registerVersions({
      db,
      readSchema,
      projections: config.projections,
      actor: owner,
      development: options.development,
    });
    for (const warning of warnings) logger.warn(warning);

    const log = createEventLog(db, config.families);
    const notifications = sessions ? createNotifications({ url }) : noNotifications;
    stops.push(() => notifications.close());
    const versions = await createVersions({
      db,
      projections: config.projections,
      notifications,
      onError: (error) => logger.warn({ err: error }, 'the registry could not be read; trying again'),
    });
    stops.push(() => versions.close());
    const lifecycle = createLifecycle(db, readSchema);

    // Reads of their own, so that slow queries never take the connections that appends and batches need.
    const reads = createDatabase({
      ...connection,
      statementTimeoutMs: config.gateway.statementTimeout,
      applicationName: 'refold-reads',
    });
    stops.push(() => reads.close());
    const positions = createPositions({
      db: reads,
      notifications,
      timeout: config.gateway.positionTimeout,
      head: () => log.head(),
    });
    stops.push(async () => positions.close());
    const readModels = createReadModels({
      db: reads,
      readSchema,
      statementTimeout: config.gateway.statementTimeout,
      positions,
    });

    const live = createLiveReadModels({
      db: reads,
      readSchema,
      versions,
      positions,
      onError: (error) => logger.warn({ err: error }, 'subscriptions wait for the database'),
    });
    stops.push(() => live.close());

    if (options.maintain) stops.push(startMaintenance({ ...options, db, log, notifications, versions, lifecycle }));

    return {
      db,
      log,
      notifications,
      versions,
      lifecycle,
      positions,
      readModels,
      live,
      execute: (command, input, executeOptions) => executeCommand(log, command, input, executeOptions),
      status: () => readStatus(db, log),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startMaintenance({
  config,
  url,
  owner,
  development,
  logger,
  ...parts
}: RuntimeOptions & Pick<Runtime, 'db' | 'log' | 'notifications' | 'versions' | 'lifecycle'>): () => Promise<void> {
  const { min, max, step, jitter } = config.runtime.polling;
  const { leaseSeconds } = config.runtime;
  const { prepare, notifications: sessions } = config.database;
  const waker = createWaker({
    minMs: min,
    maxMs: max,
    stepMs: step,
    jitter,
    subscribe: (wake) => parts.notifications.on('refold_events', wake),
  });
  const ownership =
    config.runtime.ownership === 'lease'
      ? createLeaseOwnership({ url, prepare, sessions, leaseSeconds })
      : createAdvisoryOwnership(url);
  const worker = createWorker({
    ...parts,
    readSchema: config.database.readSchema,
    projections: config.projections,
    source: createLogSource(parts.log, waker),
    pageSize: config.runtime.pageSize,
    ownership,
    longestStallMs: leaseSeconds * 1000,
    owner,
    freeze: development,
    logger,
  });
  return async () => {
    await worker.stop();
    await ownership.close();
    waker.close();
  };
}
