import { Counter, Gauge, type Registry } from 'prom-client';
import type { Replica } from '../reads/replica.ts';

/** Adds to a registry of Prometheus how this process fares with its replica. */
export function registerReplicaMetrics(registry: Registry, { lag, sent }: Replica): void {
  new Gauge({
    name: 'refold_replica_lag_seconds',
    help: 'By how much the replica may be behind the primary; infinite where it is not read from.',
    registers: [registry],
    collect() {
      this.set(lag() / 1000);
    },
  });
  new Counter({
    name: 'refold_replica_operations_total',
    help: 'Queries that could go to the replica, by where they were sent.',
    labelNames: ['server'],
    registers: [registry],
    collect() {
      this.reset();
      this.inc({ server: 'replica' }, sent.replica);
      this.inc({ server: 'primary' }, sent.primary);
    },
  });
}
