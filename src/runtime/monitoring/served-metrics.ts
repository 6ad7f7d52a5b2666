import { Gauge, type Registry } from 'prom-client';
import type { ServedReadModels } from '../reads/served-read-models.ts';

/** Registers a Prometheus metric of the read models that this process answers for. */
export function registerServedMetrics(registry: Registry, readModels: Pick<ServedReadModels, 'served'>): void {
  new Gauge({
    name: 'refold_projection_served',
    help: '1 if this process answers for the read model, 0 if it declares the read model and no version of it answers.',
    labelNames: ['projection'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [projection, answers] of readModels.served()) this.set({ projection }, answers ? 1 : 0);
    },
  });
}
