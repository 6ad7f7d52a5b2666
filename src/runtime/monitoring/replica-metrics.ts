import { Counter, Gauge, type Registry } from 'prom-client';
import type { Replica } from '../reads/replica.ts';

/** Registers Prometheus metrics of this process's use of its replica. */
export function registerReplicaMetrics(registry: Registry, { lag, sent }: Replica): void {
  new Gauge({
    name: 'refold_replica_lag_seconds',
    help: 'Upper bound of the lag of the replica behind the primary; infinite if the replica is not used.',
    registers: [registry],
    collect() {
      this.set(lag() / 1000);
    },
  });
  new Counter({
    name: 'refold_replica_operations_total',
    help: 'Queries that the replica may serve, by the server they were sent to.',
    labelNames: ['server'],
    registers: [registry],
    collect() {
      this.reset();
      this.inc({ server: 'replica' }, sent.replica);
      this.inc({ server: 'primary' }, sent.primary);
    },
  });
}
