import type { Projection } from '../../projections/declaration/projection.ts';

/** Whether a text of this name is an id by its name alone: `id`, `cartId`, `AccountId`. */
export function isIdName(name: string): boolean {
  return /^id$|Id$|ID$/.test(name);
}

/**
 * The columns of each projection whose texts are ids, whatever their name: its key, and what relations name keys by. One id has one type
 * everywhere: a text that is an id is `ID`, a UUID is `UUID`, and a number stays what it is.
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

/** The name of a scalar for a text. */
export function textScalar(name: string, ids: ReadonlySet<string>): 'ID' | 'String' {
  return ids.has(name) || isIdName(name) ? 'ID' : 'String';
}
