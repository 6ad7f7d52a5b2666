import type { Projection } from '../../projections/projection/projection.ts';

const known = new WeakMap<Projection, Map<string, readonly string[]>>();

/** Registers the columns that a computed field needs; they are read if the field is selected. */
export function computedFrom(projection: Projection, field: string, columns: readonly string[]): void {
  const fields = known.get(projection) ?? new Map<string, readonly string[]>();
  known.set(projection, fields.set(field, columns));
}

/** Returns the computed fields, each with the columns that it needs. */
export function computedFields(projection: Projection): ReadonlyMap<string, readonly string[]> {
  return known.get(projection) ?? new Map();
}
