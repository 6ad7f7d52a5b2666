import { Counter, type Registry } from 'prom-client';
import type { History } from '../consumers/history.ts';

/** Registers a Prometheus metric for lost events that this process knew. */
export function registerHistoryMetrics(registry: Registry, history: Pick<History, 'cuts'>): void {
  new Counter({
    name: 'refold_history_changes_total',
    help: 'How often this process found that events it knew are gone, as after a fail-over that lost some.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(history.cuts);
    },
  });
}
