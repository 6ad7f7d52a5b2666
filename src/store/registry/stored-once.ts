import type { VersionState } from '../../projections/projection/version-map.ts';

interface Registered {
  readonly name: string;
  readonly version: number;
  readonly state: VersionState;
}

/**
 * The versions of several registries, each once, as a registry orders them. A version is in one store: the one that its first declaration named.
 * It is in two only if it was declared in another store while the first one did not respond. Then the one that answers counts.
 *
 * @param registered those of the log's database first
 */
export function storedOnce<T extends Registered>(registered: readonly T[]): T[] {
  const versions = new Map<string, T>();
  for (const one of registered) {
    const id = `${one.name}@${one.version}`;
    const other = versions.get(id);
    if (!other || standing(one) > standing(other)) versions.set(id, one);
  }
  return [...versions.values()].sort(byVersion);
}

function standing({ state }: Registered): number {
  return state === 'retired' ? 0 : state === 'active' ? 2 : 1;
}

/** Orders versions of several stores as a registry does. */
export function byVersion(
  a: { readonly name: string; readonly version: number },
  b: { readonly name: string; readonly version: number },
): number {
  return a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1;
}
