import { isOutage } from '../../store/postgres/database-errors.ts';
import { readStoresWith, readVersionsOf } from '../../store/registry/all-registries.ts';
import { readAllRebuilds } from '../../store/registry/rebuilds.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/**
 * What decides about actions on the versions of a projection, in all stores that hold some: two equal ones mean that nothing has changed in
 * between. A store that does not respond does not keep actions in the others from being run.
 *
 * @param db any store
 */
export async function projectionBasis(db: Queryable, name: string): Promise<unknown> {
  return readStoresWith(db, name, async (store) => {
    const versions = await readRegistry(store, name);
    const rebuilds = (await readAllRebuilds(store)).filter((one) => one.name === name);
    return [
      versions.map(basisOf),
      rebuilds.map(({ version, form, requestedAt, heldReason }) => [version, form, requestedAt, heldReason !== null]),
    ];
  });
}

function basisOf(entry: RegisteredVersion): unknown {
  const { version, state, generation, tableName, paused, canary, shadow } = entry;
  return [version, state, generation, tableName, paused?.since ?? null, canary, shadow?.startedAt ?? null];
}

/** The versions of a projection that are active, the lowest first, in all stores. @param db any store */
export async function activeVersions(db: Queryable, name: string): Promise<RegisteredVersion[]> {
  return (await readVersionsOf(db, name)).filter(({ state }) => state === 'active');
}

/** The version of a projection that answers; null if none does, undefined if a store that may have it does not respond. */
export async function highestIfKnown(db: Queryable, name: string): Promise<RegisteredVersion | null | undefined> {
  try {
    return (await activeVersions(db, name)).at(-1) ?? null;
  } catch (error) {
    if (!isOutage(error)) throw error;
    return undefined;
  }
}
