import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** The registry of a read store. */
export interface RegistrySource {
  /** The name of the store. */
  readonly name: string;
  readonly db: Queryable;
}

/** The registries of all read stores, as this process last read them. */
export interface Registries {
  /**
   * Reads the registries. Never waits for a store apart from the log that did not respond the last time.
   *
   * @throws the error of the first store, which is in the database of the log
   */
  read(): Promise<void>;
  /** All versions, ordered by name and version. A version that is declared in one store does not count in another. */
  known(projections: readonly Projection[]): readonly RegisteredVersion[];
  /** The stores whose registry was never read. */
  unread(): ReadonlySet<string>;
}

/** @param onRead called when a store apart from the log was read after all, or differs now */
export function createRegistries(
  [home, ...apart]: readonly [RegistrySource, ...RegistrySource[]],
  onRead: () => void,
  onError: (error: unknown) => void,
): Registries {
  const last = new Map<string, readonly RegisteredVersion[]>();
  const silent = new Set<string>();
  const reading = new Map<string, Promise<void>>();

  async function readApart({ name, db }: RegistrySource): Promise<void> {
    try {
      last.set(name, await readRegistry(db));
      if (silent.delete(name)) onRead();
    } catch (error) {
      silent.add(name);
      if (!isOutage(error)) onError(error);
    }
  }

  /** One read of a store at a time. */
  function startReading(store: RegistrySource): Promise<void> {
    const started = reading.get(store.name) ?? readApart(store).finally(() => void reading.delete(store.name));
    reading.set(store.name, started);
    return started;
  }

  return {
    async read() {
      const others = apart.map((store) => {
        const waits = !silent.has(store.name);
        // A read that began before may have missed what the caller wants to see.
        const before = waits ? reading.get(store.name) : undefined;
        const started = before ? before.then(() => startReading(store)) : startReading(store);
        return waits ? started : undefined;
      });
      last.set(home.name, await readRegistry(home.db));
      await Promise.all(others);
    },
    known(projections) {
      if (apart.length === 0) return last.get(home.name) ?? [];
      const storeOf = new Map(projections.map(({ id, store }) => [id, store]));
      return [...last]
        .flatMap(([store, versions]) =>
          versions.filter(({ name, version }) => (storeOf.get(`${name}@${version}`) ?? store) === store),
        )
        .sort((a, b) => (a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1));
    },
    unread: () => new Set(apart.map(({ name }) => name).filter((name) => !last.has(name))),
  };
}

/** The versions of this registry, and those of the same projections in other stores, as far as they respond. */
export async function withOtherStores(
  tx: Queryable,
  registered: readonly RegisteredVersion[],
): Promise<readonly RegisteredVersion[]> {
  const { elsewhere } = tx;
  if (!elsewhere) return registered;
  const names = new Set(registered.map(({ name }) => name));
  const stores = new Set([...names].flatMap((name) => elsewhere.storesOf(name)));
  const others = await Promise.all([...stores].map(registryIfAvailable));
  return [...registered, ...others.flat().filter(({ name }) => names.has(name))];
}

/** Their rows would be in two stores, and the former ones would serve nobody. @throws RefoldError `PROJECTION_CHANGED` */
export async function expectInNoOtherStore(tx: Queryable, projections: readonly Projection[]): Promise<void> {
  if (projections.length === 0) return;
  const others = (await Promise.all((tx.elsewhere?.others() ?? []).map(registryIfAvailable))).flat();
  const kept = new Set(
    others.filter(({ state }) => state !== 'retired').map((entry) => `${entry.name}@${entry.version}`),
  );
  const found = projections.find(({ id }) => kept.has(id));
  if (!found) return;
  const { id, name, version, store } = found;
  throw new RefoldError(
    'PROJECTION_CHANGED',
    `${id} is declared in the store '${store}', and its rows are in another one. Declare them there again, and ${name}@${version + 1} in '${store}': it is built while ${id} answers. Then run 'refold retire ${id}'.`,
    { name, version },
  );
}

/** Nothing of a store that does not respond: it must not keep others from starting. */
function registryIfAvailable(store: Queryable): Promise<readonly RegisteredVersion[]> {
  return readRegistry(store).catch((error: unknown) => {
    if (isOutage(error)) return [];
    throw error;
  });
}
