import type { ReadStores } from '../../store/read-store.ts';
import { readAllRebuilds } from '../../store/registry/rebuilds.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** What decides about actions on the versions of a projection: two equal ones mean that nothing has changed in between. */
export async function projectionBasis(db: Queryable, name: string): Promise<unknown> {
  const versions = await readRegistry(db, name);
  const rebuilds = (await readAllRebuilds(db)).filter((one) => one.name === name);
  return [
    versions.map(basisOf),
    rebuilds.map(({ version, form, requestedAt, heldReason }) => [version, form, requestedAt, heldReason !== null]),
  ];
}

function basisOf({ version, state, generation, tableName, paused, canary, shadow }: RegisteredVersion): unknown {
  return [version, state, generation, tableName, paused?.since ?? null, canary, shadow?.startedAt ?? null];
}

/** The databases in which versions are registered: versions of one projection may be in several read stores. */
export function registriesOf({ home, apart }: Pick<ReadStores, 'home' | 'apart'>): readonly Queryable[] {
  return [home, ...apart].map(({ db }) => db);
}

/** The versions of a projection that are active, the lowest first. */
export async function activeVersions(registries: readonly Queryable[], name: string): Promise<RegisteredVersion[]> {
  const registered = await Promise.all(registries.map((db) => readRegistry(db)));
  return registered
    .flat()
    .filter((one) => one.name === name && one.state === 'active')
    .sort((a, b) => a.version - b.version);
}
