import { type Config, defineConfig, type Projection } from '../src/index.ts';
import { credits, declared, families, journal, sales, totals } from './domain.ts';

/** The name of the read store in another server than the log. */
export const apart = 'apart';

/** Several partitions and owners, SQL over batches that are sent to the store, dead letters; what clients read after a write, and feeds. */
const there: ReadonlySet<string> = new Set([sales, journal, totals, credits].map(({ name }) => name));

/** The version, in the store for which it is declared in a run. */
export function inItsStore(projection: Projection): Projection {
  return there.has(projection.name) ? Object.freeze({ ...projection, store: apart }) : projection;
}

/** What a process of a run declares. */
export function declaredInStores(lowest: number, highest: number): readonly Projection[] {
  return declared(lowest, highest).map(inItsStore);
}

/** The application as its operator configures it. */
export function operatedConfig(url: string, storeUrl: string): Config {
  return defineConfig({
    events: families,
    projections: declaredInStores(1, 1),
    database: { url },
    readStores: { [apart]: { url: storeUrl } },
  });
}
