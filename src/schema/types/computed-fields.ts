import type { Projection } from '../../projections/declaration/projection.ts';

const known = new WeakMap<Projection, Map<string, readonly string[]>>();

/** Has these columns read where the field is selected. */
export function computedFrom(projection: Projection, field: string, columns: readonly string[]): void {
  const fields = known.get(projection) ?? new Map<string, readonly string[]>();
  known.set(projection, fields.set(field, columns));
}

/** The fields that are computed, each with the columns that it is computed from. */
export function computedFields(projection: Projection): ReadonlyMap<string, readonly string[]> {
  return known.get(projection) ?? new Map();
}
