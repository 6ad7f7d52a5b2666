import type { GraphQLResolveInfo } from 'graphql';
import { isNumeric, isOrdered } from '../../projections/columns/aggregate-columns.ts';
import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Measure } from '../../projections/queries/row-query.ts';
import { selectedFields } from '../analysis/selected-columns.ts';
import type { Builder } from '../builder/builder.ts';
import { metadata } from '../builder/field-metadata.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { type GroupArguments, groupedQuery, wholeQuery } from '../input/aggregate-query.ts';
import { aggregateOf } from '../types/aggregate-types.ts';
import { groupableColumns } from '../types/groupings.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { queryNames } from '../types/query-names.ts';
import { beforeFilter, beforeRead } from './before-read.ts';

/**
 * Adds `cartSummariesAggregate(where)` and `cartSummariesGrouped(by, …)` of one projection. Each runs one statement that computes what is
 * selected.
 */
export function addAggregateFields(
  builder: Builder,
  names: TypeNames,
  types: ProjectionTypes,
  maxPageSize: number,
): void {
  addAggregate(builder, names, types);
  addGrouped(builder, names, types, maxPageSize);
}

function addAggregate(builder: Builder, names: TypeNames, { served, projection, where, aggregates }: ProjectionTypes) {
  builder.queryField(names.claimField('Query', queryNames(projection).aggregate, projection.id), (t) =>
    t.field({
      type: aggregates.aggregate,
      description: 'Aggregates of all rows that match, not only of one page. Only what is selected is computed.',
      ...metadata({ kind: 'aggregate', served }),
      args: {
        where: t.arg({
          type: where,
          required: false,
          description: 'Only rows that match this filter. Default: all rows.',
        }),
      },
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, root?.after, info);
        if (waiting) await waiting;
        const query = wholeQuery(projection, args, selectedMeasures(projection, info), context.versions);
        await beforeFilter(context, query.where);
        const [all] = await context.readModels.aggregate(projection, query);
        return aggregateOf([], query, all ?? { key: [], measures: [] });
      },
    }),
  );
}

function addGrouped(
  builder: Builder,
  names: TypeNames,
  { served, projection, where, aggregates }: ProjectionTypes,
  maxPageSize: number,
) {
  builder.queryField(names.claimField('Query', queryNames(projection).grouped, projection.id), (t) =>
    t.field({
      type: [aggregates.group],
      description: 'Aggregates of the rows that match, for each group.',
      ...metadata({ kind: 'groups', served, maxPageSize }),
      args: {
        by: t.arg({
          type: [aggregates.groupBy],
          required: true,
          description: 'The columns to group by.',
        }),
        where: t.arg({
          type: where,
          required: false,
          description: 'Only rows that match this filter. Default: all rows.',
        }),
        having: t.arg({
          type: aggregates.having,
          required: false,
          description: 'Only groups that match this filter. Default: all groups.',
        }),
        orderBy: t.arg({
          type: [aggregates.orderBy],
          required: false,
          description:
            'The order of the groups. Groups with equal values are ordered by their key, ascending. Groups without a value come last.',
        }),
        first: t.arg.int({
          required: false,
          description: `The number of groups from the start. Default and maximum: ${maxPageSize}.`,
        }),
      },
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, root?.after, info);
        if (waiting) await waiting;
        const measures = selectedMeasures(projection, info);
        const { query, by } = groupedQuery(projection, args as GroupArguments, measures, maxPageSize, context.versions); // typed by the field's arguments
        await beforeFilter(context, query.where);
        const groups = await context.readModels.aggregate(projection, query);
        return groups.map((group) => aggregateOf(by, query, group));
      },
    }),
  );
}

function selectedMeasures(projection: Projection, info: GraphQLResolveInfo): readonly Measure[] {
  const columns = Object.entries(projection.columns);
  const groupable = groupableColumns(projection);
  const kinds = [
    ['countDistinct', (_: Column, name: string) => groupable.has(name)],
    ['sum', isNumeric],
    ['avg', isNumeric],
    ['min', isOrdered],
    ['max', isOrdered],
  ] as const;
  return [
    ...(selectedFields(info, [[]]).has('count') ? [{ kind: 'count' } as const] : []),
    ...kinds.flatMap(([kind, has]): Measure[] => {
      const selected = selectedFields(info, [[kind]]);
      return columns
        .filter(([name, column]) => selected.has(name) && has(column, name))
        .map(([column]) => ({ kind, column }));
    }),
  ];
}
