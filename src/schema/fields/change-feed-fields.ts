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
        'All rows as they are, then what becomes of them. Who comes back with the `cursor` of the last message gets what has changed since, and nothing else.',
      args: {
        since: t.arg.string({
          required: false,
          description:
            "The `cursor` of the last message that was applied, or of an answer's `extensions.cursors`; or a position alone. The header `Last-Event-ID` counts in its place.",
        }),
        where: t.arg({
          type: where,
          required: false,
          description: 'Other rows are left out: a row that no longer matches is sent as removed.',
        }),
        snapshot: t.arg.boolean({
          required: false,
          defaultValue: true,
          description: 'False: where there is nothing to go on from, only what changes from now on.',
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
    description: 'What became of a row: the latest, where it changed several times.',
    fields: (t) => ({
      operation: t.field({
        type: operation,
        description: 'Whether the row is to be set or removed.',
        resolve: (change) => change.operation,
      }),
      key: t.field({
        type: key,
        description: 'Which row it is.',
        resolve: (change) => keyRow(projection, change.key),
      }),
      row: t.field({
        type: row,
        nullable: true,
        description: 'As it is now; null where it is gone.',
        resolve: (change) => change.row,
      }),
      position: t.field({
        type: 'Position',
        description: 'How far into the event log the change reaches.',
        resolve: (change) => change.position,
      }),
    }),
  });
  return builder.objectRef<ChangeFeedUpdate>(names.claim(`${graphql.type}Changes`, id)).implement({
    description: 'Apply it whole: set what is upserted, remove what is deleted.',
    fields: (t) => ({
      position: t.field({
        type: 'Position',
        description: 'Everything up to here has been sent, except within a snapshot of several messages.',
        resolve: (update) => update.position,
      }),
      cursor: t.string({
        nullable: true,
        description: 'What `since` takes to go on after this message; null while more of a snapshot is to come.',
        resolve: ({ cursor }) => cursor && cursorText(cursor),
      }),
      reset: t.boolean({
        description: 'Forget what you have: the rows that there are follow, if you asked for them.',
        resolve: (update) => update.reset,
      }),
      lagged: t.field({
        type: lagReason,
        nullable: true,
        description: 'Why the copy must be dropped.',
        resolve: (update) => update.lagged,
      }),
      changes: t.field({
        type: [change],
        description: 'In the order of their positions.',
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
      description: 'What became of a row.',
      values: {
        UPSERT: { description: 'It is new, or has other values.' },
        DELETE: { description: 'It is gone, or it no longer matches. It may never have been sent before.' },
      } as const,
    }),
    lagReason: builder.enumType('LagReason', {
      description: 'Why what a subscriber knew can not be continued.',
      values: Object.fromEntries(lagReasons.map((reason) => [reason, { description: lagMeanings[reason] }])) as {
        [R in LagReason]: { description: string };
      }, // one entry per reason
    }),
  };
}

const lagMeanings: Readonly<Record<LagReason, string>> = {
  EXPIRED: 'It was too long ago: changes are kept for a quarter of an hour.',
  REPLACED: 'Another version answers now, or its rows were rebuilt.',
  TOO_MANY: 'So many rows changed at once that they are not sent one by one.',
  AHEAD: 'The read model is not there yet: it was of another database, or of one that was restored since.',
  HISTORY_CHANGED:
    'The database lost events, as in a fail-over or a restore: what you had may come from some that are gone.',
};
