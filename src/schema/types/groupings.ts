import { timeBuckets } from '../../projections/columns/aggregate-columns.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { Grouping } from '../../projections/queries/row-query.ts';
import { indexedColumns } from './filter-types.ts';
import { pascalCase } from './type-names.ts';

/** What rows can be grouped by, under its name in GraphQL: the indexed columns, and parts of time such as `openedAtDay`. */
export function groupingsOf(projection: Projection): ReadonlyMap<string, Grouping> {
  const columns = indexedColumns(projection).filter(([name]) => !noEnumValues.includes(name));
  const taken = new Set(columns.map(([name]) => name));
  return new Map<string, Grouping>(
    columns.flatMap(([column, declared]): (readonly [string, Grouping])[] => [
      [column, { column, bucket: null }],
      ...timeBuckets(declared)
        .map((bucket) => [`${column}${pascalCase(bucket)}`, { column, bucket }] as const)
        // A column keeps its name.
        .filter(([name]) => !taken.has(name)),
    ]),
  );
}

/** Columns whose values make groups, and are counted. */
export function groupableColumns(projection: Projection): ReadonlySet<string> {
  const groupings = [...groupingsOf(projection).values()];
  return new Set(groupings.filter(({ bucket }) => bucket === null).map(({ column }) => column));
}

/** Names of columns that GraphQL takes as fields, and not as values of an enum. */
const noEnumValues = ['true', 'false', 'null'];
