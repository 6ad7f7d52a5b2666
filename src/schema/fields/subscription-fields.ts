import type { ObjectRef } from '@pothos/core';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import { columnSelection } from '../analysis/selected-columns.ts';
import type { Builder, Types } from '../builder/builder.ts';
import type { TypeNames } from '../builder/type-names.ts';
import type { ListPlace, LiveListUpdate } from '../contract/operation-context.ts';
import { rowFilter } from '../input/where.ts';
import { keyRow } from '../types/key-type.ts';
import { rowOrder } from '../types/order.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput, keyArgument } from '../values/canonical-input.ts';
import { defaultPageSize, firstOf } from '../values/page-arguments.ts';
import { refuseUnlessActive } from './before-read.ts';
import { addChangeFeed } from './change-feed-fields.ts';
import { refuseRelations } from './relation-fields.ts';

/**
 * Adds the subscriptions of one projection: `cartSummary(cartId)`, `cartSummaries(where, orderBy, first)` and `cartSummaryChanges(since,
 * where)`.
 */
export function addSubscriptionFields(
  builder: Builder,
  names: TypeNames,
  types: ProjectionTypes,
  maxPageSize: number,
): void {
  addRow(builder, names, types);
  addList(builder, names, types, maxPageSize);
  addChangeFeed(builder, names, types);
}

function addRow(builder: Builder, names: TypeNames, { served, projection, row, keyArguments }: ProjectionTypes) {
  const paths = [[]];
  const columnsOf = columnSelection(projection, paths);
  builder.subscriptionField(names.claimField('Subscription', projection.graphql.single, projection.id), (t) =>
    t.field({
      type: row,
      nullable: true,
      description: 'The current row, then the row after each change. Null while there is none.',
      args: Object.fromEntries(
        keyArguments.map(([name, type, description]) => [name, t.arg({ type, required: true, description })]),
      ),
      async subscribe(_, args, context, info) {
        const key = keyArgument(projection, args);
        refuseRelations(projection, info, paths);
        await refuseUnlessActive(served, context);
        return context.live.row(projection, key, columnsOf(info), { after: context.after });
      },
      resolve: (event) => event.row,
    }),
  );
}

function addList(builder: Builder, names: TypeNames, types: ProjectionTypes, maxPageSize: number) {
  const { served, projection, where, orderBy } = types;
  const paths = [['snapshot'], ['entered'], ['changed']];
  const columnsOf = columnSelection(projection, paths);
  builder.subscriptionField(names.claimField('Subscription', projection.graphql.list, projection.id), (t) =>
    t.field({
      type: updateOf(builder, names, types),
      description: 'The current list, then its changes.',
      args: {
        where: t.arg({
          type: where,
          required: false,
          description: 'Only rows that match this filter. Default: all rows.',
        }),
        orderBy: t.arg({
          type: [orderBy],
          required: false,
          description: 'The order of the rows. Rows with equal values are ordered by their key.',
        }),
        first: t.arg.int({
          required: false,
          description: `The length of the list. Default: ${Math.min(defaultPageSize, maxPageSize)}. Maximum: ${maxPageSize}.`,
        }),
      },
      async subscribe(_, args, context, info) {
        const where = rowFilter(projection, args.where, context.versions);
        if (relatedFilters(where).length > 0)
          throw badInput(
            "A subscription's 'where' can't follow relations: it would not notice when the other rows change.",
          );
        const query = {
          where,
          orderBy: rowOrder(args.orderBy),
          first: firstOf(args.first, maxPageSize),
          columns: columnsOf(info),
        };
        refuseRelations(projection, info, paths);
        await refuseUnlessActive(served, context);
        return context.live.list(projection, query, { after: context.after });
      },
      resolve: (update) => update,
    }),
  );
}

function updateOf(
  builder: Builder,
  names: TypeNames,
  { projection, row, key }: ProjectionTypes,
): ObjectRef<Types, LiveListUpdate> {
  const { graphql, id } = projection;
  const place = builder.objectRef<ListPlace>(names.claim(`${graphql.type}Place`, id)).implement({
    description: 'The place of a row in a list.',
    fields: (t) => ({
      key: t.field({ type: key, description: 'The row.', resolve: (one) => keyRow(projection, one.key) }),
      after: t.field({
        type: key,
        nullable: true,
        description: 'The row directly before it. Null if it is the first.',
        resolve: (one) => one.after && keyRow(projection, one.after),
      }),
    }),
  });
  return builder.objectRef<LiveListUpdate>(names.claim(`${graphql.type}ListUpdate`, id)).implement({
    description: 'The changes of a list since the previous message. The first message has the whole list.',
    fields: (t) => ({
      position: t.field({
        type: 'Position',
        description: 'The position of the event log that this message includes.',
        resolve: (update) => update.position,
      }),
      snapshot: t.field({
        type: [row],
        nullable: true,
        description:
          'The whole list in its order: in the first message, and after the read model was replaced. Otherwise null.',
        resolve: (update) => update.snapshot,
      }),
      entered: t.field({
        type: [row],
        description: 'Rows that were added to the list.',
        resolve: (update) => update.entered,
      }),
      changed: t.field({
        type: [row],
        description: 'Rows of the list whose values have changed.',
        resolve: (update) => update.changed,
      }),
      left: t.field({
        type: [key],
        description: 'The keys of rows that were removed from the list.',
        resolve: (update) => update.left.map((values) => keyRow(projection, values)),
      }),
      places: t.field({
        type: [place],
        description:
          'The places of rows that were added or moved. Move one after the other behind the row that is named: the result is the order of the list. Empty if there is a snapshot.',
        resolve: (update) => update.places ?? [],
      }),
    }),
  });
}
