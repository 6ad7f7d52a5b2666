import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { type ReadStore, type ReadStores, readEachStore } from '../../store/read-store.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import { storedOnce } from '../../store/registry/stored-once.ts';
import type { Lifecycle } from '../versions/lifecycle.ts';
import type { StoredVersion } from '../versions/registries.ts';

export interface StoreFinder {
  /**
   * The store that has a version now. If none of those that respond has it, one that does not respond and may have it; otherwise that of the
   * log, which says that nobody knows the version.
   */
  of(name: string, version: number): Promise<ReadStore>;
  /** All versions of the stores that respond. */
  versions(): Promise<readonly StoredVersion[]>;
}

/** What an application declares. In development it may be replaced, so it is read each time. */
interface Declared {
  readonly projections: readonly { readonly name: string; readonly version: number; readonly store: string }[];
}

/** @param onFound receives the versions whenever they are read */
export function createStoreFinder(
  stores: ReadStores,
  declared: Declared,
  onFound: (versions: readonly StoredVersion[]) => void = () => {},
): StoreFinder {
  async function read(): Promise<{ versions: readonly StoredVersion[]; away: ReadonlySet<string> }> {
    const { found, away } = await readEachStore(stores, async ({ name: store, db }) =>
      (await readRegistry(db)).map((entry): StoredVersion => ({ ...entry, store })),
    );
    const versions = found.flat();
    onFound(versions);
    return { versions, away: new Set(away) };
  }

  return {
    async of(name, version) {
      if (stores.apart.length === 0) return stores.home;
      const { versions } = await read();
      const found = storedOnce(versions).find(isVersion(name, version));
      return stores.of(found ?? declared.projections.find(isVersion(name, version)) ?? { store: stores.home.name });
    },
    versions: async () => (await read()).versions,
  };
}

/** The store that has both versions, whose rows can be compared there. @throws RefoldError `INVALID_TRANSITION` if each is in another one */
export async function storeOfBoth(find: StoreFinder, older: Projection, newer: Projection): Promise<ReadStore> {
  const store = await find.of(newer.name, newer.version);
  const other = await find.of(older.name, older.version);
  if (other.name === store.name) return store;
  throw new RefoldError(
    'INVALID_TRANSITION',
    `${older.id} is in the store '${other.name}' and ${newer.id} in '${store.name}': rows are compared within one database. 'refold verify' compares each with the log, and 'refold changes ${newer.id}' shows what clients would lose.`,
  );
}

function isVersion(name: string, version: number) {
  return (one: { readonly name: string; readonly version: number }) => one.name === name && one.version === version;
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
    const versions = storedOnce(await find.versions());
    const highest = versions.findLast((entry) => entry.name === name && isWanted(entry));
    return highest ? stores.of(highest) : stores.home;
  }

  return {
    caughtUp: (projection, ...given) => of(stores.of(projection)).caughtUp(projection, ...given),
    becomeActive: (projection, step) => of(stores.of(projection)).becomeActive(projection, step),
    hold: (projection, ...given) => of(stores.of(projection)).hold(projection, ...given),
    async activate(name, version, step, options = {}) {
      const store = await find.of(name, version);
      for (const other of options.along ?? []) {
        const otherStore = await find.of(other.name, other.version);
        if (otherStore.name !== store.name)
          throw new RefoldError(
            'INVALID_TRANSITION',
            `${name}@${version} is in the store '${store.name}' and ${other.name}@${other.version} in '${otherStore.name}': only versions of one store become active together. Activate those of each store on their own.`,
          );
      }
      await of(store).activate(name, version, step, options);
    },
    rollback: async (name, step) => of(await storeWith(name, ({ state }) => state === 'active')).rollback(name, step),
    async retire(name, version, ...given) {
      // More than one if it was declared in another store while the first one did not respond; see `storedOnce`.
      const all = (await find.versions()).filter((one) => isVersion(name, version)(one) && one.state !== 'retired');
      const holders = all.length > 0 ? all.map(stores.of) : [await find.of(name, version)];
      for (const store of holders) await of(store).retire(name, version, ...given);
    },
    startCanary: async (name, version, ...given) =>
      (await ofVersion(name, version)).startCanary(name, version, ...given),
    endCanary: async (name, step) => of(await storeWith(name, ({ canary }) => canary !== null)).endCanary(name, step),
    pause: async (name, version, step) => (await ofVersion(name, version)).pause(name, version, step),
    resume: async (name, version, step) => (await ofVersion(name, version)).resume(name, version, step),
  };
}
