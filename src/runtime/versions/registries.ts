import { RefoldError } from '../../errors.ts';
import { defaultStore, type Projection } from '../../projections/projection/projection.ts';
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

/** A copy of a version, and the store that has it. */
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
  /** All copies of all versions. The same array as long as no registry differs but in what batches write. */
  copies(): readonly StoredVersion[];
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
  let copies: readonly StoredVersion[] | undefined;
  const silent = new Set<string>();
  const reading = new Map<string, Promise<void>>();

  async function readIfChanged({ name, db }: RegistrySource): Promise<void> {
    if (last.get(name)?.mark === (await readRegistryMark(db))) return;
    last.set(name, await readMarkedRegistry(db));
    copies = undefined;
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
    copies() {
      copies ??= [...last].flatMap(([store, { versions }]) => versions.map((entry) => ({ ...entry, store })));
      return copies;
    },
    unread: () => new Set(apart.map(({ name }) => name).filter((name) => !last.has(name))),
  };
}

/** The versions of all stores, as far as they respond: a store that does not must not keep others from starting. */
export async function withOtherStores(
  tx: Queryable,
  registered: readonly RegisteredVersion[],
): Promise<{ readonly versions: readonly RegisteredVersion[]; readonly isComplete: boolean }> {
  const others = await Promise.all((tx.elsewhere?.others() ?? []).map(registryIfAvailable));
  const versions = [...registered, ...others.flatMap((other) => other ?? [])];
  return { versions, isComplete: !others.includes(undefined) };
}

/** A version stays in the store where its rows are, whatever is declared. Returns what to tell the operator. */
export function elsewhereText({ id, store }: Projection): string {
  return `${id} is declared in the store '${store}', and its rows are in another one. They answer from there. After a move, declare the store that it went to; 'refold rebuild ${id} --store ${store}' moves it to the one that is declared.`;
}

export function inlineElsewhere({ id, name, version }: Projection, store: string): RefoldError {
  return new RefoldError(
    'PROJECTION_CHANGED',
    `${id}: mode 'inline' needs its rows in the database of the log, and they are in the read store '${store}'. 'refold rebuild ${id} --store ${defaultStore}' moves them.`,
    { name, version },
  );
}

/** @throws RefoldError `PROJECTION_CHANGED` if the version has moved to a store that is not configured here */
export function expectKnownStore(
  { id, name, version }: Projection,
  { movedTo }: Pick<RegisteredVersion, 'movedTo'>,
  knownStores: readonly string[],
): void {
  if (movedTo === null || knownStores.includes(movedTo)) return;
  throw new RefoldError(
    'PROJECTION_CHANGED',
    `${id} has moved to the read store '${movedTo}', which this configuration does not have. Add it to 'readStores'.`,
    { name, version },
  );
}

/** @throws RefoldError `PROJECTION_CHANGED` if the version has moved to another store, and none has it: the URL may be that of another database */
export function expectFound(
  { id, name, version }: Projection,
  known: RegisteredVersion,
  { versions, isComplete }: Awaited<ReturnType<typeof withOtherStores>>,
): void {
  const isElsewhere = versions.some((one) => one !== known && one.name === name && one.version === version);
  if (known.state !== 'retired' || known.movedTo === null || isElsewhere || !isComplete) return;
  throw new RefoldError(
    'PROJECTION_CHANGED',
    `${id} has moved to the read store '${known.movedTo}', and the database that is configured for it does not have the version. Correct its URL in 'readStores', or restore that database.`,
    { name, version },
  );
}

/** Undefined for a store that does not respond. */
function registryIfAvailable(store: Queryable): Promise<readonly RegisteredVersion[] | undefined> {
  return readRegistry(store).catch((error: unknown) => {
    if (isOutage(error)) return undefined;
    throw error;
  });
}

/** Copies of versions, by ids such as `cart_summary@2`. */
export type CopiesById = ReadonlyMap<string, StoredVersion>;

export function copiesById(copies: readonly StoredVersion[]): CopiesById {
  return new Map(copies.map((copy) => [`${copy.name}@${copy.version}`, copy]));
}

/** Where the rows of a version are. The store to which it has moved may not have been read yet. */
function storeOf({ state, store, movedTo }: StoredVersion): string {
  return state === 'retired' && movedTo !== null ? movedTo : store;
}

/**
 * Creates a function that returns a version with the store and the table that hold its rows: the same object as long as it holds the same
 * rows.
 */
export function createStoredVersions() {
  const known = new WeakMap<Projection, Map<string, Projection>>();
  const origins = new WeakMap<Projection, Projection>();
  return (registered: CopiesById, projection: Projection): Projection => {
    const declared = origins.get(projection) ?? projection;
    const found = registered.get(declared.id);
    const { tableName, generation } = found ?? { tableName: declared.tableName, generation: 1 };
    const store = found ? storeOf(found) : declared.store;
    const place = `${store} ${tableName} ${generation}`;
    const places = known.get(declared) ?? new Map<string, Projection>();
    const version = places.get(place) ?? Object.freeze({ ...declared, store, tableName });
    known.set(declared, places.set(place, version));
    origins.set(version, declared);
    return version;
  };
}
