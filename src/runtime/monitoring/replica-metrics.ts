import { Counter, Gauge, type Registry } from 'prom-client';
import { defaultStore } from '../../projections/projection/projection.ts';
import type { Replica } from '../reads/replica.ts';

/**
 * Registers Prometheus metrics of this process's use of its replicas. The one of the log's database has no label `store`.
 *
 * @param replicas by the names of their read stores
 */
export function registerReplicaMetrics(registry: Registry, replicas: ReadonlyMap<string, Replica>): void {
  new Gauge({
    name: 'refold_replica_lag_seconds',
    help: 'Upper bound of the lag of the replica behind its primary; infinite if the replica is not used. With `store`: of that read store.',
    labelNames: ['store'],
    registers: [registry],
    collect() {
      for (const [store, { lag }] of replicas) this.set(labelOf(store), lag() / 1000);
    },
  });
  new Counter({
    name: 'refold_replica_operations_total',
    help: 'Queries that the replica may serve, by the server they were sent to. With `store`: of that read store.',
    labelNames: ['server', 'store'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [store, { sent }] of replicas) {
        this.inc({ server: 'replica', ...labelOf(store) }, sent.replica);
        this.inc({ server: 'primary', ...labelOf(store) }, sent.primary);
      }
    },
  });
}

function labelOf(store: string): { readonly store?: string } {
  return store === defaultStore ? {} : { store };
}
