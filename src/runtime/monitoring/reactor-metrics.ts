import type { Registry } from 'prom-client';
import type { ReactorStatus } from '../reactors/reactor-operations.ts';
import { scrapedMetrics } from './scraped-metrics.ts';

/** Registers metrics of the reactors. */
export function registerReactorMetrics(registry: Registry, look: () => Promise<readonly ReactorStatus[]>): void {
  const { gauge, counter } = scrapedMetrics({
    registry,
    look,
    labelsOf: ({ name }) => ({ reactor: name }),
    labelNames: ['reactor'],
  });

  gauge('refold_reactor_lag_positions', "Positions of the log between the reactor's checkpoint and its head.", (one) =>
    Number(one.lag),
  );
  gauge('refold_reactor_stopped', '1 if the reactor stopped at an event.', ({ state }) => Number(state === 'stopped'));
  gauge('refold_reactor_paused', '1 if an operator has paused the reactor.', ({ state }) => Number(state === 'paused'));
  gauge(
    'refold_reactor_dead_letters',
    'Events that the reactor could not handle, and those waiting behind them.',
    ({ deadLetters }) => deadLetters,
  );
  gauge(
    'refold_reactor_waiting_events',
    'Events whose handlers wait, for a time or for another event.',
    ({ waiting }) => waiting,
  );
  counter('refold_reactor_events_handled_total', 'Events that the reactor has handled.', ({ handled }) =>
    Number(handled),
  );
  counter('refold_reactor_events_skipped_total', 'Events that the reactor has skipped.', ({ skipped }) =>
    Number(skipped),
  );

  const versions = scrapedMetrics({
    registry,
    look: async () => (await look()).flatMap(({ name, versions }) => versions.map((version) => ({ name, version }))),
    labelsOf: ({ name, version }) => ({ reactor: name, version: String(version.version) }),
    labelNames: ['reactor', 'version'],
  });
  versions.gauge(
    'refold_reactor_events_under_way',
    'Events that the version of the reactor has begun to handle and not ended, with its dead letters.',
    ({ version }) => version.underWay,
  );
  versions.gauge('refold_reactor_version_needed', '1 if the declaration of this version is needed.', ({ version }) =>
    Number(version.isNeeded),
  );
}
