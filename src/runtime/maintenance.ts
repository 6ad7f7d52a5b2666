import type { Logger } from 'pino';
import type { Config } from '../config/define-config.ts';
import type { Maintained } from '../config/maintained.ts';
import type { EventLog } from '../store/event-log.ts';
import { createAdvisoryOwnership } from '../store/ownership/advisory-ownership.ts';
import { createLeaseOwnership } from '../store/ownership/lease-ownership.ts';
import { createMemoryOwnership } from '../store/ownership/memory-ownership.ts';
import type { Ownership } from '../store/ownership/ownership.ts';
import { readWork } from '../store/ownership/work.ts';
import type { Database } from '../store/postgres/database.ts';
import type { ReadStores } from '../store/read-store.ts';
import { unitText } from '../store/server/processor-unit.ts';
import { createActivator } from './activation/activator.ts';
import { createGoLive } from './activation/go-live.ts';
import type { EventSource } from './consumers/event-source.ts';
import type { History } from './consumers/history.ts';
import type { WorkMetrics } from './monitoring/work-metrics.ts';
import { createLostRows } from './ownership/lost-rows.ts';
import type { ProcessDescription } from './ownership/presence.ts';
import { createProjectionUnits } from './ownership/projection-units.ts';
import { createWorker } from './ownership/worker.ts';
import { createRetention } from './processors/retention.ts';
import { createReactorUnits } from './reactors/reactor-units.ts';
import type { Positions } from './reads/positions.ts';
import { createSnapshotSchedule } from './rebuilds/table-snapshot-schedule.ts';
import { createSlowEvents } from './scheduling/slow-events.ts';
import { createAuditor } from './verification/auditor.ts';
import { createViewFollower } from './versions/follow-views.ts';
import type { Lifecycle } from './versions/lifecycle.ts';
import type { TableWatch } from './versions/table-watch.ts';
import { dropTablesOutOfUse } from './versions/version-tables.ts';
import type { VersionView } from './versions/versions.ts';

export interface MaintenanceOptions {
  readonly config: Config;
  /** What this process maintains of it. */
  readonly maintained: Maintained;
  readonly url: string;
  /** Identifies this process in the registry and the audit log. */
  readonly owner: string;
  readonly development: boolean;
  readonly logger: Logger;
  readonly described: ProcessDescription;
  readonly db: Database;
  readonly log: EventLog;
  readonly source: EventSource;
  readonly history: History;
  readonly versions: VersionView;
  /** All stores, and the name of this one. */
  readonly stores: ReadStores;
  readonly store: string;
  readonly positions: Positions;
  readonly lifecycle: Lifecycle;
  readonly tables: TableWatch;
  readonly metrics: Pick<WorkMetrics, 'timed' | 'rowsLost' | 'slowEvent'> | undefined;
}

/**
 * Starts what maintains read tables and reactors in this process: the worker, activation, verification, snapshots and retention.
 *
 * @returns a function that stops all of it
 */
export function startMaintenance({
  config,
  maintained,
  url,
  owner,
  development,
  logger,
  described,
  metrics,
  ...parts
}: MaintenanceOptions): () => Promise<void> {
  const { pageSize, bufferedPages, leaseSeconds, stopTimeout } = config.runtime;
  const { projections, reactors } = maintained;
  const { placement } = parts.db.elsewhere ?? {};
  const ownership = openOwnership(config, url);
  const slowEvents = createSlowEvents(logger, metrics?.slowEvent);
  const projectionUnits = createProjectionUnits({
    ...parts,
    readSchema: config.database.readSchema,
    projections,
    owner,
    freeze: development,
    onRowsLost: metrics?.rowsLost,
    slowEvents,
    logger,
  });
  const reactorUnits = createReactorUnits({ ...parts, reactors, owner, grace: stopTimeout, slowEvents, logger });
  const worker = createWorker({
    db: parts.db,
    versions: parts.versions,
    async work() {
      const work = await readWork(parts.db);
      return {
        units: [...projectionUnits(work), ...(await reactorUnits())],
        oldTables: work.oldTables,
        stopped: new Set(work.stopped.map(unitText)),
        // Locks and leases end with every other server that has a registry.
        ...(placement === undefined ? {} : { workerStart: work.serverStart }),
      };
    },
    dropOldTables: () => dropTablesOutOfUse({ db: parts.db, projections: config.projections, logger }),
    source: parts.source,
    history: parts.history,
    pageSize,
    bufferedPages,
    ownership,
    longestStallMs: leaseSeconds * 1000,
    families: config.families,
    described,
    ...(metrics ? { timed: metrics.timed } : {}),
    ...(placement === 'partition' ? { lostRows: createLostRows(parts.db) } : {}),
    logger,
  });
  const checks = { ...parts, readSchema: config.database.readSchema, projections, owner, logger };
  const retention = createRetention(parts.db, config.runtime, logger);
  const activator = createActivator(checks);
  const viewFollower = createViewFollower(checks);
  const goLive = projections.some(({ mode }) => mode === 'inline')
    ? createGoLive({ ...checks, freeze: development })
    : undefined;
  const { audit } = config.runtime;
  const snapshotSchedule = createSnapshotSchedule(checks);
  const auditor = audit ? createAuditor({ ...checks, ...audit }) : undefined;
  return async () => {
    // Stop them in parallel: each finishes only what it has begun.
    const periodic = [activator, viewFollower, goLive, retention, auditor, snapshotSchedule];
    await Promise.all([worker.stop(), ...periodic.map((task) => task?.stop())]);
    await ownership.close();
  };
}

function openOwnership({ runtime, database }: Config, url: string): Ownership {
  const { leaseSeconds, leaseRenewalFactor: renewalFactor } = runtime;
  const { prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = database;
  switch (runtime.ownership) {
    case 'lease':
      return createLeaseOwnership({ url, prepare, sessions, leaseSeconds, renewalFactor });
    case 'advisory':
      return createAdvisoryOwnership({ url, prepare, leaseSeconds, renewalFactor, answerTimeoutMs });
    case 'memory':
      return createMemoryOwnership(url);
  }
}
