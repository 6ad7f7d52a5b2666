import type { Projection } from '../../projections/projection/projection.ts';
import type { ReadStore, ReadStores } from '../../store/read-store.ts';
import { type RegisteredVersion, readRegistry, readVersion } from '../../store/registry/registry.ts';
import type { Lifecycle } from '../versions/lifecycle.ts';

export interface StoreFinder {
  /** The store of a version: that of its declaration, or, if it is not declared here, the one whose registry contains it. */
  of(name: string, version: number): Promise<ReadStore>;
  /** The stores that may hold versions of a projection. */
  holding(name: string): readonly ReadStore[];
}

export function createStoreFinder(stores: ReadStores, projections: readonly Projection[]): StoreFinder {
  return {
    async of(name, version) {
      const declared = projections.find((one) => one.name === name && one.version === version);
      if (declared) return stores.of(declared);
      for (const store of stores.apart) {
        if (await readVersion(store.db, { name, version })) return store;
      }
      return stores.home; // it says that nobody knows the version
    },
    holding(name) {
      const declared = projections.filter((one) => one.name === name).map((one) => stores.of(one));
      return [...new Set([stores.home, ...declared])];
    },
  };
}

/** The life of versions in several stores: each step is a transaction of its version's store. */
export function lifecycleOfStores(
  stores: ReadStores,
  find: StoreFinder,
  create: (store: ReadStore) => Lifecycle,
): Lifecycle {
  if (stores.apart.length === 0) return create(stores.home);
  const lifecycles = new Map([stores.home, ...stores.apart].map((store) => [store, create(store)]));
  const of = (store: ReadStore): Lifecycle => {
    const found = lifecycles.get(store);
    if (!found) throw new TypeError(`There is no read store '${store.name}'.`); // one for each
    return found;
  };
  const ofVersion = async (name: string, version: number) => of(await find.of(name, version));

  /** The store with the highest version of a projection that is in the wanted condition; the one of the log if there is none. */
  async function storeWith(name: string, isWanted: (entry: RegisteredVersion) => boolean): Promise<ReadStore> {
    const found = await Promise.all(
      find.holding(name).map(async (store) => {
        const versions = (await readRegistry(store.db, name)).filter(isWanted);
        return { store, version: versions.at(-1)?.version ?? 0 };
      }),
    );
    return found.reduce((a, b) => (b.version > a.version ? b : a)).store;
  }

  return {
    caughtUp: (projection, ...given) => of(stores.of(projection)).caughtUp(projection, ...given),
    becomeActive: (projection, step) => of(stores.of(projection)).becomeActive(projection, step),
    hold: (projection, ...given) => of(stores.of(projection)).hold(projection, ...given),
    activate: async (name, version, ...given) => (await ofVersion(name, version)).activate(name, version, ...given),
    rollback: async (name, step) => of(await storeWith(name, ({ state }) => state === 'active')).rollback(name, step),
    retire: async (name, version, ...given) => (await ofVersion(name, version)).retire(name, version, ...given),
    startCanary: async (name, version, ...given) =>
      (await ofVersion(name, version)).startCanary(name, version, ...given),
    endCanary: async (name, step) => of(await storeWith(name, ({ canary }) => canary !== null)).endCanary(name, step),
    pause: async (name, version, step) => (await ofVersion(name, version)).pause(name, version, step),
    resume: async (name, version, step) => (await ofVersion(name, version)).resume(name, version, step),
  };
}
