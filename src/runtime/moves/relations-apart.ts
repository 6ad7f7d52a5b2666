import type { Projection } from '../../projections/projection/projection.ts';
import { currentCopies } from '../../store/registry/copies.ts';
import type { StoredVersion } from '../versions/registries.ts';

interface Apart {
  readonly moving: Projection;
  /** Related to it, and served from another store after the move. */
  readonly staying: Projection;
  /** The store of `staying`. */
  readonly store: string;
}

/**
 * Where relations lead to another store after a move. A relation leads to the served version of its target: the highest active one.
 *
 * @param declared the versions of the application
 * @param copies of all versions, in all stores
 */
export function relationsApart(
  moving: readonly Projection[],
  to: string,
  declared: readonly Projection[],
  copies: readonly StoredVersion[],
): readonly Apart[] {
  const served = new Map<string, { readonly projection: Projection; readonly store: string }>();
  for (const { name, version, state, store } of currentCopies(copies)) {
    const projection = declared.find((one) => one.name === name && one.version === version);
    if (!projection || state !== 'active' || version < (served.get(name)?.projection.version ?? 0)) continue;
    served.set(name, { projection, store: moving.includes(projection) ? to : store });
  }
  const all = [...served.values()];
  return all
    .filter(({ projection }) => moving.includes(projection))
    .flatMap(({ projection }) =>
      all
        .filter((other) => other.store !== to && areRelated(projection, other.projection))
        .map((other) => ({ moving: projection, staying: other.projection, store: other.store })),
    );
}

function areRelated(one: Projection, other: Projection): boolean {
  return leadsTo(one, other) || leadsTo(other, one);
}

function leadsTo({ relations }: Projection, { name }: Projection): boolean {
  return Object.values(relations).some(({ target }) => target === name);
}
