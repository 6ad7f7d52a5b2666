import { Gauge, type Registry } from 'prom-client';
import type { ServedReadModels } from '../reads/served-read-models.ts';

/** Adds to a registry of Prometheus which read models this process answers for. */
export function registerServedMetrics(registry: Registry, readModels: Pick<ServedReadModels, 'served'>): void {
  new Gauge({
    name: 'refold_projection_served',
    help: '1 where this process answers for the read model, 0 where it declares the read model and no version of it answers.',
    labelNames: ['projection'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [projection, answers] of readModels.served()) this.set({ projection }, answers ? 1 : 0);
    },
  });
}
