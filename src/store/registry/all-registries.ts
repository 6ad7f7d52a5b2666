import type { Queryable } from '../statements/statement.ts';
import type { StoredDefinition } from '../statements/stored-json.ts';
import { type DefinedVersion, highestActive, readDefinition } from './definitions.ts';
import { type RegisteredVersion, readRegistry } from './registry.ts';

/** All versions in all stores, ordered by name and version. */
export async function readAllRegistries(db: Queryable): Promise<RegisteredVersion[]> {
  const others = db.elsewhere?.others() ?? [];
  if (others.length === 0) return readRegistry(db);
  const registered = (await Promise.all([db, ...others].map((store) => readRegistry(store)))).flat();
  return registered.sort((a, b) => (a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1));
}

/** The versions of a projection in the order of their numbers, those of other stores too. */
export async function readVersionsOf(db: Queryable, name: string): Promise<RegisteredVersion[]> {
  const registered = await Promise.all(storesWith(db, name).map((store) => readRegistry(store, name)));
  return registered.flat().sort((a, b) => a.version - b.version);
}

/** The highest active version of a projection in all stores: the one that answers, if it is declared. */
export async function answering(db: Queryable, name: string): Promise<DefinedVersion | undefined> {
  const found = await Promise.all(storesWith(db, name).map((store) => highestActive(store, name)));
  return found.reduce((a, b) => (a && b && b.version < a.version ? a : (b ?? a)), undefined);
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
