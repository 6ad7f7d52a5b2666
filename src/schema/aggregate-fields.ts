import type { GraphQLResolveInfo } from 'graphql';
import { isNumeric, isOrdered } from '../projections/aggregate-columns.ts';
import type { Projection } from '../projections/projection.ts';
import type { Measure } from '../projections/row-query.ts';
import { groupConditions, groupOrder } from './aggregate-inputs.ts';
import { aggregateOf } from './aggregate-types.ts';
import { beforeRead } from './before-read.ts';
import type { Builder } from './builder.ts';
import { groupingsOf } from './groupings.ts';
import { firstOf } from './page-arguments.ts';
import type { ProjectionTypes } from './projection-types.ts';
import { queryNames } from './query-names.ts';
import { selectedFields } from './selected-columns.ts';
import type { TypeNames } from './type-names.ts';
import { rowFilter } from './where.ts';

/** `cartSummariesAggregate(where)` and `cartSummariesGrouped(by, …)` of one projection: one statement each, for what is selected. */
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
      description: 'Numbers about all rows that match, in as many pages as they may be; what is selected is computed.',
      args: { where: t.arg({ type: where, required: false }) },
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, root?.after, info);
        if (waiting) await waiting;
        const query = {
          where: rowFilter(projection, args.where),
          groupBy: [],
          measures: selectedMeasures(projection, info),
          having: [],
          orderBy: [],
          limit: null,
        };
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
  const groupings = groupingsOf(projection);
  builder.queryField(names.claimField('Query', queryNames(projection).grouped, projection.id), (t) =>
    t.field({
      type: [aggregates.group],
      description: 'Numbers about groups of the rows that match.',
      args: {
        by: t.arg({
          type: [aggregates.groupBy],
          required: true,
          description: 'What the rows of a group have in common.',
        }),
        where: t.arg({ type: where, required: false }),
        having: t.arg({ type: aggregates.having, required: false }),
        orderBy: t.arg({
          type: [aggregates.orderBy],
          required: false,
          description: 'The key, ascending, decides where this does not. Groups without a value come last.',
        }),
        first: t.arg.int({
          required: false,
          description: `Groups from the start: ${maxPageSize} where nothing is given, and at most.`,
        }),
      },
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, root?.after, info);
        if (waiting) await waiting;
        const by = [...new Set(args.by)];
        const query = {
          where: rowFilter(projection, args.where),
          groupBy: by.flatMap((name) => groupings.get(name) ?? []), // the enum has no other names
          measures: selectedMeasures(projection, info),
          having: groupConditions(projection, args.having),
          orderBy: groupOrder(projection, by, args.orderBy),
          limit: firstOf(args.first ?? maxPageSize, maxPageSize),
        };
        const groups = await context.readModels.aggregate(projection, query);
        return groups.map((group) => aggregateOf(by, query, group));
      },
    }),
  );
}

function selectedMeasures(projection: Projection, info: GraphQLResolveInfo): readonly Measure[] {
  const columns = Object.entries(projection.columns);
  const kinds = [
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
        .filter(([name, column]) => selected.has(name) && has(column))
        .map(([column]) => ({ kind, column }));
    }),
  ];
}
