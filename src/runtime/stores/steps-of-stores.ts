import { isOutage } from '../../store/postgres/database-errors.ts';
import type { ReadStore, ReadStores } from '../../store/read-store.ts';
import { currentCopies } from '../../store/registry/copies.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import type { Lifecycle } from '../versions/lifecycle.ts';
import type { StoredVersion } from '../versions/registries.ts';

export interface StoreFinder {
  /**
   * The store that has a version now. If none of those that respond has it, one that does not respond and may have it; otherwise that of the
   * log, which says that nobody knows the version.
   */
  of(name: string, version: number): Promise<ReadStore>;
  /** All copies of all versions, in the stores that respond. */
  copies(): Promise<readonly StoredVersion[]>;
}

/** @param onFound receives the copies whenever they are read */
export function createStoreFinder(
  stores: ReadStores,
  projections: readonly { readonly name: string; readonly version: number; readonly store: string }[],
  onFound: (copies: readonly StoredVersion[]) => void = () => {},
): StoreFinder {
  async function read(): Promise<{ copies: readonly StoredVersion[]; away: ReadonlySet<string> }> {
    const away = new Set<string>();
    const registries = [stores.home, ...stores.apart].map(async ({ name: store, db }) => {
      try {
        return (await readRegistry(db)).map((entry): StoredVersion => ({ ...entry, store }));
      } catch (error) {
        if (store === stores.home.name || !isOutage(error)) throw error;
        away.add(store);
        return [];
      }
    });
    const copies = (await Promise.all(registries)).flat();
    onFound(copies);
    return { copies, away };
  }

  return {
    async of(name, version) {
      if (stores.apart.length === 0) return stores.home;
      const { copies, away } = await read();
      const own = copies.filter((one) => one.name === name && one.version === version);
      const declared = projections.find((one) => one.name === name && one.version === version)?.store;
      const [found] = currentCopies(own);
      const hidden = found?.movedTo ?? (found ? undefined : declared);
      if (hidden !== undefined && away.has(hidden)) return stores.of({ store: hidden });
      return found ? stores.of(found) : stores.of({ store: declared ?? stores.home.name });
    },
    copies: async () => (await read()).copies,
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
  async function storeWith(name: string, isWanted: (entry: StoredVersion) => boolean): Promise<ReadStore> {
    const versions = currentCopies(await find.copies()).filter((entry) => entry.name === name && isWanted(entry));
    const [highest] = versions.toSorted((a, b) => b.version - a.version);
    return highest ? stores.of(highest) : stores.home;
  }

  return {
    caughtUp: (projection, ...given) => of(stores.of(projection)).caughtUp(projection, ...given),
    becomeActive: (projection, step) => of(stores.of(projection)).becomeActive(projection, step),
    hold: (projection, ...given) => of(stores.of(projection)).hold(projection, ...given),
    activate: async (name, version, ...given) => (await ofVersion(name, version)).activate(name, version, ...given),
    rollback: async (name, step) => of(await storeWith(name, ({ state }) => state === 'active')).rollback(name, step),
    async retire(name, version, ...given) {
      const current = await find.of(name, version);
      // Copies that a move has left, or that it builds.
      const others = (await find.copies()).filter(
        (one) => one.name === name && one.version === version && one.state !== 'retired' && one.store !== current.name,
      );
      for (const copy of others) await of(stores.of(copy)).retire(name, version, ...given);
      await of(current).retire(name, version, ...given);
    },
    startCanary: async (name, version, ...given) =>
      (await ofVersion(name, version)).startCanary(name, version, ...given),
    endCanary: async (name, step) => of(await storeWith(name, ({ canary }) => canary !== null)).endCanary(name, step),
    pause: async (name, version, step) => (await ofVersion(name, version)).pause(name, version, step),
    resume: async (name, version, step) => (await ofVersion(name, version)).resume(name, version, step),
  };
}
