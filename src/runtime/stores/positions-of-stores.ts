import type { Projection } from '../../projections/projection/projection.ts';
import type { Positions } from '../reads/positions.ts';

/** The positions of versions in several stores, each asked of its own store. */
export function positionsOfStores(byStore: ReadonlyMap<string, Positions>): Positions {
  const all = [...byStore.values()];
  const [only] = all;
  if (only && all.length === 1) return only;
  const of = ({ store }: Projection): Positions => {
    const found = byStore.get(store);
    if (!found) throw new TypeError(`There is no read store '${store}'.`); // the configuration is checked
    return found;
  };
  return {
    waitFor: (projection, position, options) => of(projection).waitFor(projection, position, options),
    progress: (projection) => of(projection).progress(projection),
    onCheckpoint: (projection, listener) => of(projection).onCheckpoint(projection, listener),
    reached: (projection, at) => of(projection).reached(projection, at),
    forget() {
      for (const positions of all) positions.forget();
    },
    close() {
      for (const positions of all) positions.close();
    },
  };
}
