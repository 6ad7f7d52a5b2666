import type { Projection } from '../../projections/projection/projection.ts';
import type { StoredVersion } from './registries.ts';

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
