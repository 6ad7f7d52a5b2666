import { RefoldError } from '../errors.ts';
import type { Database } from './postgres/database.ts';
import { isOutage } from './postgres/database-errors.ts';
import type { Notifications } from './postgres/notifications.ts';

/**
 * A database of read models. Everything of a version lives in one store: its row in the registry, its checkpoints and epochs, rows, changes, dead
 * letters, rebuilds, snapshots, leases and announcements of processes. So a batch is one transaction of its store. The log, reactors and inline
 * versions live in the store `default`.
 */
export interface ReadStore {
  readonly name: string;
  readonly url: string;
  /** The pool of batches and of the registry. */
  readonly db: Database;
  /** The pool of clients' reads. */
  readonly reads: Database;
  readonly notifications: Notifications;
}

/** The stores of an application. */
export interface ReadStores {
  /** The one in the database of the log. */
  readonly home: ReadStore;
  /** The others. */
  readonly apart: readonly ReadStore[];
  /** The store of a version. */
  of(version: { readonly store: string }): ReadStore;
  /** The names of stores that are known not to respond, so lists do not wait for them. @default none are known */
  silent?(): ReadonlySet<string>;
  /** Resolves if a store does not respond while something is read from it. Rejects if the signal aborts. @default nobody looks */
  untilSilent?(store: ReadStore, signal: AbortSignal): Promise<void>;
}

export function readStores(home: ReadStore, apart: readonly ReadStore[]): ReadStores {
  const byName = new Map([home, ...apart].map((store) => [store.name, store]));
  return {
    home,
    apart,
    of({ store }) {
      const found = byName.get(store);
      if (!found) throw new TypeError(`There is no read store '${store}'.`); // the configuration is checked
      return found;
    },
  };
}

/** What was read in the stores that respond. */
export interface FoundInStores<T> {
  /** Of the store of the log first. */
  readonly found: readonly T[];
  /** The names of the stores apart from the log that do not respond: what they have is missing. */
  readonly away: readonly string[];
}

type EachStore = Pick<ReadStores, 'home' | 'apart' | 'silent' | 'untilSilent'>;

/** Reads something in each store, at the same time. */
export async function readEachStore<T>(
  { home, apart, silent, untilSilent }: EachStore,
  read: (store: ReadStore) => Promise<T>,
): Promise<FoundInStores<T>> {
  const known = silent?.() ?? new Set();
  const others = apart.map(async (store): Promise<readonly T[] | undefined> => {
    if (known.has(store.name)) return undefined;
    const done = new AbortController();
    try {
      const found = read(store).then((one) => [one]);
      return await (untilSilent ? Promise.race([found, untilSilent(store, done.signal).then(() => undefined)]) : found);
    } catch (error) {
      if (!isOutage(error)) throw error;
      return undefined;
    } finally {
      done.abort();
    }
  });
  const [first, ...rest] = await Promise.all([read(home), ...others]);
  const away = apart.flatMap(({ name }, index) => (rest[index] === undefined ? [name] : []));
  return { found: [first, ...rest.flatMap((one) => one ?? [])], away };
}

/** Reads a list in each store, and returns all entries. Leaves out a store apart from the log that does not respond. */
export async function inEachStore<T>(stores: EachStore, read: (db: Database) => Promise<readonly T[]>): Promise<T[]> {
  return (await readEachStore(stores, ({ db }) => read(db))).found.flat();
}

/** An error that says which of several databases it concerns. */
export function errorInStore(name: string, error: unknown): unknown {
  if (!(error instanceof RefoldError)) return error;
  return new RefoldError(error.code, `The read store '${name}': ${error.message}`, error.fields, { cause: error });
}
