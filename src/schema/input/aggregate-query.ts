import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import type { AggregateQuery, Measure } from '../../projections/queries/row-query.ts';
import { groupConditions, groupOrder } from '../types/aggregate-inputs.ts';
import type { WhereInput } from '../types/filter-types.ts';
import { groupingsOf } from '../types/groupings.ts';
import { firstOf } from '../values/page-arguments.ts';
import { rowFilter } from './where.ts';

export interface AggregateArguments {
  readonly where?: WhereInput | null | undefined;
}

export interface GroupArguments extends AggregateArguments {
  readonly by: readonly string[];
  readonly having?: Parameters<typeof groupConditions>[1];
  readonly orderBy?: Parameters<typeof groupOrder>[2];
  readonly first?: number | null | undefined;
}

/** Returns the query for measures of all matching rows. @throws RefoldError `BAD_USER_INPUT` */
export function wholeQuery(
  projection: Projection,
  { where }: AggregateArguments,
  measures: readonly Measure[],
  versions: VersionMap,
): AggregateQuery {
  return {
    where: rowFilter(projection, where, versions),
    groupBy: [],
    measures,
    having: [],
    orderBy: [],
    limit: null,
  };
}

/** Returns the query for measures of groups, and the names of the groupings. @throws RefoldError `BAD_USER_INPUT` */
export function groupedQuery(
  projection: Projection,
  args: GroupArguments,
  measures: readonly Measure[],
  maxPageSize: number,
  versions: VersionMap,
): { readonly query: AggregateQuery; readonly by: readonly string[] } {
  const by = [...new Set(args.by)];
  const groupings = groupingsOf(projection);
  const query = {
    where: rowFilter(projection, args.where, versions),
    groupBy: by.flatMap((name) => groupings.get(name) ?? []), // the enum allows only these names
    measures,
    having: groupConditions(projection, args.having),
    orderBy: groupOrder(projection, by, args.orderBy),
    limit: firstOf(args.first ?? maxPageSize, maxPageSize),
  };
  return { query, by };
}
