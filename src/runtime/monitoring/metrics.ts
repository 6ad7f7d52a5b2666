import { Registry } from 'prom-client';
import type { Database } from '../../store/postgres/database.ts';
import type { ReadStores } from '../../store/read-store.ts';
import type { History } from '../consumers/history.ts';
import type { ReactorStatus } from '../reactors/reactor-operations.ts';
import type { Replica } from '../reads/replica.ts';
import type { ServedReadModels } from '../reads/served-read-models.ts';
import { registerHistoryMetrics } from './history-metrics.ts';
import { registerHorizonMetrics } from './horizon-metrics.ts';
import { registerReactorMetrics } from './reactor-metrics.ts';
import { registerReplicaMetrics } from './replica-metrics.ts';
import { scrapedMetrics } from './scraped-metrics.ts';
import { registerServedMetrics } from './served-metrics.ts';
import type { VersionStatus } from './status.ts';
import { registerStoreMetrics } from './store-metrics.ts';

/** Creates Prometheus metrics of the projection versions, the reactors and the log, in the given registry. */
export function createRuntimeMetrics(
  runtime: {
    status(): Promise<readonly VersionStatus[]>;
    readonly reactors: { status(): Promise<readonly ReactorStatus[]> };
    readonly history: Pick<History, 'cuts'>;
    /** By the names of their read stores. */
    readonly replicas: ReadonlyMap<string, Replica>;
    readonly readModelsServed: ServedReadModels | undefined;
    readonly db: Database;
    readonly stores: Pick<ReadStores, 'apart'>;
    storeProblems(): Readonly<Record<string, string>>;
  },
  metrics = new Registry(),
): Registry {
  registerVersionMetrics(metrics, runtime.status);
  registerReactorMetrics(metrics, runtime.reactors.status);
  registerHorizonMetrics(metrics, runtime.db);
  registerHistoryMetrics(metrics, runtime.history);
  if (runtime.readModelsServed)
    registerServedMetrics(metrics, { served: () => runtime.readModelsServed?.served() ?? new Map() });
  if (runtime.stores.apart.length > 0) registerStoreMetrics(metrics, runtime);
  if (runtime.replicas.size > 0) registerReplicaMetrics(metrics, runtime.replicas);
  return metrics;
}

function registerVersionMetrics(registry: Registry, look: () => Promise<readonly VersionStatus[]>): void {
  const { gauge, counter } = scrapedMetrics({
    registry,
    look,
    labelsOf: ({ name, version }) => ({ projection: name, version: String(version) }),
    labelNames: ['projection', 'version'],
  });
  const ifMaintained = (measure: (version: VersionStatus) => number) => (version: VersionStatus) =>
    version.state === 'retired' || version.state === 'failed' ? null : measure(version);
  gauge(
    'refold_lag_events',
    'Events that the version handles and has not folded yet; if it is far behind, those among the next 10,000 positions.',
    ifMaintained(({ lagEvents }) => Number(lagEvents)),
  );
  gauge(
    'refold_lag_positions',
    'Positions of the log between the version and its head.',
    ifMaintained(({ lag }) => Number(lag)),
  );
  gauge(
    'refold_lag_seconds',
    'Age of the first event that the version handles and has not folded yet.',
    ifMaintained(({ lagSeconds }) => lagSeconds),
  );
  gauge('refold_version_active', '1 if the version may answer.', ({ state }) => (state === 'active' ? 1 : 0));
  gauge(
    'refold_version_failed',
    "1 if a version that does not answer yet can't continue, see refold status.",
    ({ state }) => (state === 'failed' ? 1 : 0),
  );
  gauge('refold_version_held', '1 if the version is held at ready, see refold status.', ({ heldReason }) =>
    heldReason === null ? 0 : 1,
  );
  gauge(
    'refold_unique_rule_unchecked',
    '1 while nothing checks the unique values of the inline version, so appends are refused.',
    ({ unchecked }) => (unchecked === null ? 0 : 1),
  );
  gauge('refold_version_paused', '1 if an operator has paused the version, so nobody maintains it.', ({ paused }) =>
    paused === null ? 0 : 1,
  );
  gauge('refold_processor_stopped', '1 if the version stopped at an event.', ({ processor }) =>
    processor === 'stopped' ? 1 : 0,
  );
  gauge(
    'refold_table_altered',
    '1 if the table of the version is missing or was altered by hand, so it is neither updated nor read.',
    ({ error }) => (error?.code === 'TABLE_ALTERED' ? 1 : 0),
  );
  gauge('refold_dead_letters', 'Events that could not be folded, and those waiting behind them.', (version) =>
    Number(version.deadLetters),
  );
  counter('refold_events_folded_total', 'Events folded into the version.', ({ eventsFolded }) => Number(eventsFolded));
  counter('refold_skipped_events_total', "Events that onError 'skip' left out of the version.", ({ eventsSkipped }) =>
    Number(eventsSkipped),
  );
  counter('refold_event_retries_total', 'Events that were tried again before onError was applied.', ({ retries }) =>
    Number(retries),
  );
  counter(
    'refold_audit_rows_total',
    'Rows of the version that audits compared with the log.',
    ({ audited }) => audited.rowsCompared,
  );
  counter(
    'refold_audit_differences_total',
    'Rows of the version that audits found to differ from the log.',
    ({ audited }) => audited.differences,
  );

  const owners = scrapedMetrics({
    registry,
    look: async () =>
      (await look()).flatMap(({ name, version, partitions }) =>
        partitions.flatMap(({ partition, owner }) => (owner === null ? [] : [{ name, version, partition, owner }])),
      ),
    labelsOf: ({ name, version, partition, owner }) => ({
      projection: name,
      version: String(version),
      partition: String(partition),
      owner,
    }),
    labelNames: ['projection', 'version', 'partition', 'owner'],
  });
  owners.gauge('refold_processor_owner', '1 for the process that maintains the partition of the version.', () => 1);
}
