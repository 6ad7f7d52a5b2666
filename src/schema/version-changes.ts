import type { Command } from '../commands/define-command.ts';
import type { Projection } from '../projections/projection/projection.ts';
import { changeOrigins } from './analysis/change-origins.ts';
import { newestVersions } from './analysis/newest-versions.ts';
import { type SchemaChange, schemaDiff } from './analysis/schema-diff.ts';
import { buildSchema } from './build-schema.ts';

/** A difference between the schemas of two versions. */
export interface VersionChange extends SchemaChange {
  /**
   * The path of the change that this one follows from. For a changed filter, order, group or aggregate it is the row's field, such as
   * `CartSummary.totalAmount`. For an independent change it is its own path.
   */
  readonly origin: string;
}

export interface VersionChangesOptions {
  /** All declared projections. The two versions are compared within the schema that the others form, so relations have their targets. */
  readonly projections: readonly Projection[];
  readonly commands: readonly Command[];
  readonly maxPageSize: number;
}

/**
 * Returns the differences for clients between two versions of a projection: fields, arguments, filters, orders and aggregates that are
 * removed, added or change their type. Breaking changes come first; among equal ones, those of the row's own fields.
 */
export function versionChanges(
  older: Projection,
  newer: Projection,
  { projections, commands, maxPageSize }: VersionChangesOptions,
): readonly VersionChange[] {
  const others = projections.filter(({ name }) => name !== newer.name);
  // Only this projection differs between the two schemas, so all differences come from it.
  const [before, after] = [older, newer].map((version) =>
    buildSchema({ versions: newestVersions([...others, version]), commands, maxPageSize }),
  );
  if (!before || !after) return [];
  // Changes derived from the row's own fields, such as filters and aggregates, read better after them.
  const own = `${older.graphql.type}.`;
  const rank = ({ criticality, path }: SchemaChange) =>
    ['breaking', 'dangerous', 'safe'].indexOf(criticality) * 2 + (path.startsWith(own) ? 0 : 1);
  const changes = schemaDiff(before, after).toSorted((a, b) => rank(a) - rank(b));
  const originOf = changeOrigins(
    { schema: before, rowType: older.graphql.type },
    { schema: after, rowType: newer.graphql.type },
    changes,
  );
  return changes.map((change) => ({ ...change, origin: originOf(change) }));
}
