import type { ObjectRef } from '@pothos/core';
import { type ChangeCursor, cursorText, parseCursor } from '../../projections/queries/change-cursor.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import { reasonOf } from '../../thrown.ts';
import { columnSelection } from '../analysis/selected-columns.ts';
import type { Builder, Types } from '../builder/builder.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { type ChangeFeedUpdate, type LagReason, lagReasons, type RowChange } from '../contract/change-feed.ts';
import { rowFilter } from '../input/where.ts';
import { keyRow } from '../types/key-type.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput } from '../values/canonical-input.ts';
import { refuseUnlessActive } from './before-read.ts';
import { refuseRelations } from './relation-fields.ts';

/** `cartSummaryChanges(since, where)`: the changes of one projection's rows, including removed ones. */
export function addChangeFeed(builder: Builder, names: TypeNames, types: ProjectionTypes): void {
  const { served, projection, where } = types;
  const paths = [['changes', 'row']];
  const columnsOf = columnSelection(projection, paths);
  const field = `${projection.graphql.single}Changes`;
  builder.subscriptionField(names.claimField('Subscription', field, projection.id), (t) =>
    t.field({
      type: messageOf(builder, names, types),
      description:
        'All current rows, then their changes. To continue an earlier subscription, pass the `cursor` of its last message as `since`: only what has changed after it is sent.',
      args: {
        since: t.arg.string({
          required: false,
          description:
            "Continue after this: the `cursor` of the last message that you applied, a cursor of a response's `extensions.cursors`, or a position. The header `Last-Event-ID` can be used instead.",
        }),
        where: t.arg({
          type: where,
          required: false,
          description: 'Only rows that match this filter. A row that no longer matches is sent as removed.',
        }),
        snapshot: t.arg.boolean({
          required: false,
          defaultValue: true,
          description:
            'Whether to send all current rows if there is nothing to continue from. False: only changes from now on.',
        }),
      },
      async subscribe(_, args, context, info) {
        const filter = rowFilter(projection, args.where, context.versions);
        if (relatedFilters(filter).length > 0)
          throw badInput(
            "A subscription's 'where' can't follow relations: it would not notice when the other rows change.",
          );
        const since = sinceOf(context.lastEventId, 'The header Last-Event-ID') ?? sinceOf(args.since, "'since'");
        refuseRelations(projection, info, paths);
        await refuseUnlessActive(served, context);
        const query = { where: filter, columns: columnsOf(info), since, snapshot: args.snapshot ?? true };
        return context.live.changes(projection, query, { after: context.after });
      },
      resolve: (update) => update,
    }),
  );
}

function sinceOf(text: string | null | undefined, what: string): ChangeCursor | null {
  if (text === null || text === undefined || text === '') return null;
  try {
    return parseCursor(text);
  } catch (cause) {
    throw badInput(`${what} is not a cursor. ${reasonOf(cause)}`, { cause });
  }
}

function messageOf(
  builder: Builder,
  names: TypeNames,
  { projection, row, key }: ProjectionTypes,
): ObjectRef<Types, ChangeFeedUpdate> {
  const { graphql, id } = projection;
  const { operation, lagReason } = enumsOf(builder);
  const change = builder.objectRef<RowChange>(names.claim(`${graphql.type}Change`, id)).implement({
    description: 'A change of a row. If it changed several times, the latest change.',
    fields: (t) => ({
      operation: t.field({
        type: operation,
        description: 'Whether to set or to remove the row.',
        resolve: (change) => change.operation,
      }),
      key: t.field({
        type: key,
        description: 'The key of the row.',
        resolve: (change) => keyRow(projection, change.key),
      }),
      row: t.field({
        type: row,
        nullable: true,
        description: 'The row with its new values. Null if it was removed.',
        resolve: (change) => change.row,
      }),
      position: t.field({
        type: 'Position',
        description: 'The position of the event log that the change includes.',
        resolve: (change) => change.position,
      }),
    }),
  });
  return builder.objectRef<ChangeFeedUpdate>(names.claim(`${graphql.type}Changes`, id)).implement({
    description: 'Changes to apply together: set the rows of each UPSERT, remove those of each DELETE.',
    fields: (t) => ({
      position: t.field({
        type: 'Position',
        description: 'All changes up to this position have been sent, except within a snapshot of several messages.',
        resolve: (update) => update.position,
      }),
      cursor: t.string({
        nullable: true,
        description:
          'The value of `since` to continue after this message. Null while more messages of a snapshot follow.',
        resolve: ({ cursor }) => cursor && cursorText(cursor),
      }),
      reset: t.boolean({
        description: 'Discard your copy. All current rows follow if `snapshot` is true.',
        resolve: (update) => update.reset,
      }),
      lagged: t.field({
        type: lagReason,
        nullable: true,
        description: 'Why to discard the copy.',
        resolve: (update) => update.lagged,
      }),
      changes: t.field({
        type: [change],
        description: 'The changes, ordered by position.',
        resolve: (update) => update.changes,
      }),
    }),
  });
}

type Enums = ReturnType<typeof makeEnums>;

const enums = new WeakMap<Builder, Enums>();

/** One set of enums for all projections. */
function enumsOf(builder: Builder): Enums {
  const known = enums.get(builder) ?? makeEnums(builder);
  enums.set(builder, known);
  return known;
}

function makeEnums(builder: Builder) {
  return {
    operation: builder.enumType('ChangeOperation', {
      description: 'The kind of a change.',
      values: {
        UPSERT: { description: 'The row is new, or its values have changed.' },
        DELETE: {
          description: 'The row was removed, or no longer matches the filter. It may not have been sent before.',
        },
      } as const,
    }),
    lagReason: builder.enumType('LagReason', {
      description: 'Why a subscriber can not continue, and discards its copy.',
      values: Object.fromEntries(lagReasons.map((reason) => [reason, { description: lagMeanings[reason] }])) as {
        [R in LagReason]: { description: string };
      }, // one entry per reason
    }),
  };
}

const lagMeanings: Readonly<Record<LagReason, string>> = {
  EXPIRED: 'The cursor is too old: changes are kept for 15 minutes.',
  REPLACED: 'Another version is active, or the rows were rebuilt.',
  TOO_MANY: 'Too many rows changed at once to send each of them.',
  AHEAD: 'The cursor is ahead of the read model: it is from another database, or the database was restored.',
  HISTORY_CHANGED:
    'The database lost events, for example in a fail-over or a restore. Your copy may include some of them.',
};
