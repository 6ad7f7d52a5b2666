import { isOutage } from '../postgres/database-errors.ts';
import type { Queryable } from '../statements/statement.ts';
import type { StoredDefinition } from '../statements/stored-json.ts';
import { type DefinedVersion, highestActive, readDefinition } from './definitions.ts';
import { type RegisteredVersion, readRegistry } from './registry.ts';
import { storedOnce } from './stored-once.ts';

/** All versions in all stores, ordered by name and version. */
export async function readAllRegistries(db: Queryable): Promise<RegisteredVersion[]> {
  const others = db.elsewhere?.others() ?? [];
  if (others.length === 0) return readRegistry(db);
  const registered = await Promise.all([db, ...others].map((store) => readRegistry(store)));
  return storedOnce(registered.flat());
}

/** The versions of a projection in the order of their numbers, those of other stores too. */
export async function readVersionsOf(db: Queryable, name: string): Promise<RegisteredVersion[]> {
  const registered = await Promise.all(storesWith(db, name).map((store) => readRegistry(store, name)));
  return storedOnce(registered.flat());
}

/** The highest active version of a projection in all stores: the one that answers, if it is declared. */
export async function answering(db: Queryable, name: string): Promise<DefinedVersion | undefined> {
  if (storesWith(db, name).length === 1) return highestActive(db, name);
  const active = (await readVersionsOf(db, name)).findLast(({ state }) => state === 'active');
  const definition = active && (await readDefinitionOf(db, name, active.version));
  return active && definition && { version: active.version, tableName: active.tableName, definition };
}

/** Reads something in each store that holds versions of a projection. @returns null for a store that does not respond */
export function readStoresWith<T>(
  db: Queryable,
  name: string,
  read: (db: Queryable) => Promise<T>,
): Promise<(T | null)[]> {
  const readOrNull = (store: Queryable) =>
    read(store).catch((error: unknown) => {
      if (isOutage(error)) return null;
      throw error;
    });
  return Promise.all(storesWith(db, name).map(readOrNull));
}

/** {@link readDefinition} in all stores. */
export async function readDefinitionOf(
  db: Queryable,
  name: string,
  version: number,
): Promise<StoredDefinition | undefined> {
  const found = await Promise.all(storesWith(db, name).map((store) => readDefinition(store, name, version)));
  return found.find((definition) => definition !== undefined);
}

/** This store, and the others that hold versions of a projection. */
function storesWith(db: Queryable, name: string): readonly Queryable[] {
  return [db, ...(db.elsewhere?.storesOf(name) ?? [])];
}
