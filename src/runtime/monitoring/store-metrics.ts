import { Gauge, type Registry } from 'prom-client';
import type { ReadStores } from '../../store/read-store.ts';
import type { VersionStatus } from './status.ts';

/** Creates the metrics of read stores apart from the log: which respond to this process, and which versions they have. */
export function registerStoreMetrics(
  registry: Registry,
  {
    stores,
    storeProblems,
    status,
  }: {
    readonly stores: Pick<ReadStores, 'apart'>;
    storeProblems(): Readonly<Record<string, string>>;
    status(): Promise<readonly VersionStatus[]>;
  },
): void {
  new Gauge({
    name: 'refold_read_store_available',
    help: '1 if this process can use the read store, 0 if its versions stand still.',
    labelNames: ['store'],
    registers: [registry],
    collect() {
      const problems = storeProblems();
      for (const { name: store } of stores.apart) this.set({ store }, store in problems ? 0 : 1);
    },
  });
  new Gauge({
    name: 'refold_version_in_store',
    help: '1 for the read store that has the version.',
    labelNames: ['projection', 'version', 'store'],
    registers: [registry],
    async collect() {
      this.reset();
      for (const { name, version, store } of await status())
        this.set({ projection: name, version: String(version), store }, 1);
    },
  });
}
