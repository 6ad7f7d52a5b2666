import { timeBuckets } from '../../projections/columns/aggregate-columns.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Grouping } from '../../projections/queries/row-query.ts';
import { pascalCase } from '../builder/type-names.ts';
import { indexedColumns } from './filter-types.ts';

/** Returns what rows can be grouped by, by its name in GraphQL: the indexed columns, and units of time such as `openedAtDay`. */
export function groupingsOf(projection: Projection): ReadonlyMap<string, Grouping> {
  const columns = indexedColumns(projection).filter(([name]) => !noEnumValues.includes(name));
  const taken = new Set(columns.map(([name]) => name));
  return new Map<string, Grouping>(
    columns.flatMap(([column, declared]): (readonly [string, Grouping])[] => [
      [column, { column, bucket: null }],
      ...timeBuckets(declared)
        .map((bucket) => [`${column}${pascalCase(bucket)}`, { column, bucket }] as const)
        // If names collide, the column keeps the name.
        .filter(([name]) => !taken.has(name)),
    ]),
  );
}

/** The columns that can be grouped by; distinct values are counted for these too. */
export function groupableColumns(projection: Projection): ReadonlySet<string> {
  const groupings = [...groupingsOf(projection).values()];
  return new Set(groupings.filter(({ bucket }) => bucket === null).map(({ column }) => column));
}

/** Column names that are valid as GraphQL fields but not as enum values. */
const noEnumValues = ['true', 'false', 'null'];
