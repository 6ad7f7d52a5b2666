import type { Projection } from '../../projections/projection/projection.ts';

/** Whether the name alone marks a text as an id: `id`, `cartId`, `AccountId`. */
export function isIdName(name: string): boolean {
  return /^id$|Id$|ID$/.test(name);
}

/**
 * Returns the text columns of each projection that are ids regardless of their names: its key, and the columns through which relations
 * refer to keys. An id has the same type everywhere: a text is `ID`, a UUID is `UUID`, and a number stays a number.
 */
export function idColumns(projections: readonly Projection[]): ReadonlyMap<Projection, ReadonlySet<string>> {
  const ids = new Map(projections.map((projection) => [projection, new Set(projection.keyColumns)]));
  for (const [projection, own] of ids)
    for (const relation of Object.values(projection.relations)) {
      if (relation.kind === 'one') for (const column of relation.from) own.add(column);
      else if (projection.keyColumns.includes(relation.from))
        for (const [target, others] of ids) if (target.name === relation.target) others.add(relation.to);
    }
  return ids;
}

/** Returns the scalar for a text column. */
export function textScalar(name: string, ids: ReadonlySet<string>): 'ID' | 'String' {
  return ids.has(name) || isIdName(name) ? 'ID' : 'String';
}
