import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { readMarkedRegistry, readRegistryMark } from '../../store/registry/registry-mark.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** The registry of a read store. */
export interface RegistrySource {
  /** The name of the store. */
  readonly name: string;
  readonly db: Queryable;
}

/** A version, and the store that has it. */
export interface StoredVersion extends RegisteredVersion {
  readonly store: string;
}

// Queries wait for it if their table was replaced, also those that ask nothing of the store that does not respond.
const patienceMs = 3_000;

/** The registries of all read stores, as this process last read them. */
export interface Registries {
  /**
   * Reads the registries. Never waits for a store apart from the log that did not respond the last time, and no longer than three seconds for one that
   * was read before.
   *
   * @throws the error of the first store, which is in the database of the log
   */
  read(): Promise<void>;
  /** The versions of all stores. The same array as long as no registry differs but in what batches write. */
  versions(): readonly StoredVersion[];
  /** The stores whose registry was never read. */
  unread(): ReadonlySet<string>;
}

/** @param onRead called when a store apart from the log was read after all, or differs now */
export function createRegistries(
  [home, ...apart]: readonly [RegistrySource, ...RegistrySource[]],
  onRead: () => void,
  onError: (error: unknown) => void,
): Registries {
  const last = new Map<string, { readonly mark: string; readonly versions: readonly RegisteredVersion[] }>();
  let versions: readonly StoredVersion[] | undefined;
  const silent = new Set<string>();
  const reading = new Map<string, Promise<void>>();

  async function readIfChanged({ name, db }: RegistrySource): Promise<void> {
    if (last.get(name)?.mark === (await readRegistryMark(db))) return;
    last.set(name, await readMarkedRegistry(db));
    versions = undefined;
  }

  async function readApart(store: RegistrySource): Promise<void> {
    const { name } = store;
    try {
      await readIfChanged(store);
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

  /** Waits for the read of a store. After a while, it counts as not responding, until the read has ended. */
  async function patiently(name: string, read: Promise<void>): Promise<void> {
    if (!last.has(name)) return read;
    const { promise: tooLong, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      silent.add(name);
      resolve();
    }, patienceMs);
    await Promise.race([read, tooLong]).finally(() => clearTimeout(timer));
  }

  return {
    async read() {
      const others = apart.map((store) => {
        const waits = !silent.has(store.name);
        // A read that began before may have missed what the caller wants to see.
        const before = waits ? reading.get(store.name) : undefined;
        const started = before ? before.then(() => startReading(store)) : startReading(store);
        return waits ? patiently(store.name, started) : undefined;
      });
      await readIfChanged(home);
      await Promise.all(others);
    },
    versions() {
      versions ??= [...last].flatMap(([store, read]) => read.versions.map((entry) => ({ ...entry, store })));
      return versions;
    },
    unread: () => new Set(apart.map(({ name }) => name).filter((name) => !last.has(name))),
  };
}

/** The versions of all stores, as far as they respond: a store that does not must not keep others from starting. */
export async function withOtherStores(
  tx: Queryable,
  registered: readonly RegisteredVersion[],
): Promise<readonly RegisteredVersion[]> {
  const others = await Promise.all((tx.elsewhere?.others() ?? []).map(registryIfAvailable));
  return [...registered, ...others.flat()];
}

/** A version stays in the store where its rows are, whatever is declared. Returns what to tell the operator. */
export function elsewhereText({ id, store }: Projection): string {
  return `${id} is declared in the store '${store}', and its rows are in another one. They answer from there. Declare that store, or declare the next version in '${store}'.`;
}

export function inlineElsewhere({ id, name, version }: Projection, store: string): RefoldError {
  return new RefoldError(
    'PROJECTION_CHANGED',
    `${id}: mode 'inline' needs its rows in the database of the log, and they are in the read store '${store}'. Declare it as ${name}@${version + 1}.`,
    { name, version },
  );
}

/** Empty for a store that does not respond. */
function registryIfAvailable(store: Queryable): Promise<readonly RegisteredVersion[]> {
  return readRegistry(store).catch((error: unknown) => {
    if (isOutage(error)) return [];
    throw error;
  });
}

/** By ids such as `cart_summary@2`. */
export type VersionsById = ReadonlyMap<string, StoredVersion>;

export function versionsById(versions: readonly StoredVersion[]): VersionsById {
  return new Map(versions.map((one) => [`${one.name}@${one.version}`, one]));
}

/**
 * Creates a function that returns a version with the store and the table that hold its rows: the same object as long as it holds the same
 * rows.
 */
export function createStoredVersions() {
  const known = new WeakMap<Projection, Map<string, Projection>>();
  const origins = new WeakMap<Projection, Projection>();
  return (registered: VersionsById, projection: Projection): Projection => {
    const declared = origins.get(projection) ?? projection;
    const found = registered.get(declared.id);
    const { tableName, generation } = found ?? { tableName: declared.tableName, generation: 1 };
    const { store } = found ?? declared;
    const place = `${store} ${tableName} ${generation}`;
    const places = known.get(declared) ?? new Map<string, Projection>();
    const version = places.get(place) ?? Object.freeze({ ...declared, store, tableName });
    known.set(declared, places.set(place, version));
    origins.set(version, declared);
    return version;
  };
}
