import type { Command } from '../commands/define-command.ts';
import type { Projection } from '../projections/declaration/projection.ts';
import { changeOrigins } from './analysis/change-origins.ts';
import { newestVersions } from './analysis/newest-versions.ts';
import { type SchemaChange, schemaDiff } from './analysis/schema-diff.ts';
import { buildSchema } from './build-schema.ts';

/** A difference between the schemas of two versions. */
export interface VersionChange extends SchemaChange {
  /**
   * The path of what it follows from: of a changed filter, order, group or aggregate the row's field, such as `CartSummary.totalAmount`. Its
   * own path if it follows from nothing else.
   */
  readonly origin: string;
}

export interface VersionChangesOptions {
  /** All that are declared: the two are compared within the schema that the others make, so that relations lead somewhere. */
  readonly projections: readonly Projection[];
  readonly commands: readonly Command[];
  readonly maxPageSize: number;
}

/**
 * What becomes different for clients where one version of a projection answers in place of another: fields, arguments, filters, orders and
 * aggregates that go, come or get another type. The breaking ones first, and among equal ones those of the row's own fields.
 */
export function versionChanges(
  older: Projection,
  newer: Projection,
  { projections, commands, maxPageSize }: VersionChangesOptions,
): readonly VersionChange[] {
  const others = projections.filter(({ name }) => name !== newer.name);
  // Only this projection differs between the two schemas, so only what differs through it is found.
  const [before, after] = [older, newer].map((version) =>
    buildSchema({ versions: newestVersions([...others, version]), commands, maxPageSize }),
  );
  if (!before || !after) return [];
  // What follows from the row's own fields, such as filters and aggregates, reads better after them.
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
