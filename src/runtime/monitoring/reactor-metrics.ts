import type { Registry } from 'prom-client';
import type { ReactorStatus } from '../reactors/reactor-steps.ts';
import { scrapedMetrics } from './scraped-metrics.ts';

/** How the reactors fare. */
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
  gauge('refold_reactor_stopped', '1 where the reactor stopped at an event.', ({ state }) =>
    Number(state === 'stopped'),
  );
  gauge('refold_reactor_paused', '1 where an operator has the reactor wait.', ({ state }) =>
    Number(state === 'paused'),
  );
  gauge(
    'refold_reactor_dead_letters',
    'Events that the reactor has given up on, and those behind them.',
    ({ deadLetters }) => deadLetters,
  );
  counter('refold_reactor_events_handled_total', 'Events that the reactor has handled.', ({ handled }) =>
    Number(handled),
  );
  counter('refold_reactor_events_skipped_total', 'Events that the reactor has left out.', ({ skipped }) =>
    Number(skipped),
  );
}
