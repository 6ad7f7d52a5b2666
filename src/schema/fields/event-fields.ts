import type { ObjectRef } from '@pothos/core';
import { type PositionToken, parseToken, tokenOf, tokenText } from '../../events/position-token.ts';
import { columnSelection, selectedFields } from '../analysis/selected-columns.ts';
import type { Builder, Types } from '../builder/builder.ts';
import type { TypeNames } from '../builder/type-names.ts';
import type { RowVersion } from '../contract/operation-context.ts';
import { boundOf, pageInfo, pageInfoOf } from '../types/connection.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput, keyArgument } from '../values/canonical-input.ts';
import { defaultPageSize, type PageArguments, requestedPage } from '../values/page-arguments.ts';
import { beforeRead } from './before-read.ts';
import { refuseRelationsOfThePast } from './history-fields.ts';

/** A page of a row's events. All events were read, because each state is folded from the events before. */
interface EventPage {
  /** The number of events in all pages. */
  readonly total: number;
  readonly rows: readonly RowVersion[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

// Each event comes with the row after it.
const maxEvents = 1000;

const eventPaths = [['nodes'], ['edges', 'node']];
const rowPaths = eventPaths.map((path) => [...path, 'row']);

/** `cartSummaryEvents(cartId, first, after, …)`: the events of a row, as a connection. */
export function addEventsField(builder: Builder, names: TypeNames, types: ProjectionTypes): void {
  const { served, projection, keyArguments } = types;
  if (!projection.history) return;
  const connection = eventConnectionOf(builder, names, types);
  const rowColumns = columnSelection(projection, rowPaths);
  const field = `${projection.graphql.single}Events`;
  builder.queryField(names.claimField('Query', field, projection.id), (t) =>
    t.field({
      type: connection,
      description: 'The events that changed the row, in the order of the log, each with the row after it.',
      args: {
        ...Object.fromEntries(
          keyArguments.map(([name, type, description]) => [name, t.arg({ type, required: true, description })]),
        ),
        first: t.arg.int({
          required: false,
          description: `The number of events from the start, or after \`after\`. Default: ${defaultPageSize}. Maximum: ${maxEvents}.`,
        }),
        after: t.arg.string({ required: false, description: 'A cursor. The page starts after it.' }),
        last: t.arg.int({ required: false, description: 'The number of events from the end, or before `before`.' }),
        before: t.arg.string({ required: false, description: 'A cursor. The page ends before it.' }),
      } as never, // the key arguments are only known at run time
      async resolve(root, args: PageArguments, context, info) {
        refuseRelationsOfThePast(projection, selectedFields(info, rowPaths), info.schema);
        const waiting = beforeRead(served, context, root?.after, info);
        if (waiting) await waiting;
        const key = keyArgument(projection, args as Readonly<Record<string, unknown>>); // other arguments are ignored
        const window = windowOf(args);
        for (const cursor of [window.after, window.before])
          if (cursor) await context.checkToken?.(cursor[0] as PositionToken); // as decoded above
        const shown = selectedFields(info, eventPaths).has('payload') ? 'payloads' : 'events';
        return pageIn(await context.readModels.history(projection, key, rowColumns(info), shown), window);
      },
    }),
  );
}

type Window = ReturnType<typeof windowOf>;

/** @throws RefoldError `BAD_USER_INPUT` */
function windowOf(args: PageArguments) {
  return requestedPage(args, { decode: (text, argument) => [tokenIn(text, argument)] }, maxEvents);
}

/** A cursor is the event's position. It stays valid as long as the log has the event, whatever happens to the row. */
function cursorOf({ event }: RowVersion): string {
  return tokenText(tokenOf(event));
}

function tokenIn(text: string, argument: string): PositionToken {
  try {
    return parseToken(text);
  } catch (cause) {
    throw badInput(`'${argument}' is not a cursor of an event. Use one from a page of the same field.`, {
      cause,
    });
  }
}

/** Returns the page of a window: the events between its cursors, from the start or from the end. */
function pageIn(all: readonly RowVersion[], { direction, limit, after, before }: Window): EventPage {
  const from = after ? countUpTo(all, (position) => position <= (after[0] as PositionToken).position) : 0; // as decoded
  const to = before ? countUpTo(all, (position) => position < (before[0] as PositionToken).position) : all.length; // as decoded
  const end = direction === 'forward' ? Math.min(to, from + limit) : Math.max(from, to);
  const start = direction === 'forward' ? from : Math.max(from, to - limit);
  const rows = all.slice(start, end);
  return { total: all.length, rows, hasNextPage: end < all.length, hasPreviousPage: start > 0 };
}

/** Counts the leading events; they are ordered by position. */
function countUpTo(all: readonly RowVersion[], isBefore: (position: bigint) => boolean): number {
  const index = all.findIndex(({ event }) => !isBefore(event.position));
  return index < 0 ? all.length : index;
}

function eventConnectionOf(
  builder: Builder,
  names: TypeNames,
  { projection, row }: ProjectionTypes,
): ObjectRef<Types, EventPage> {
  const { graphql, id } = projection;
  const event = builder.objectRef<RowVersion>(names.claim(`${graphql.type}Event`, id)).implement({
    description: `An event that changed a \`${graphql.type}\`.`,
    fields: (t) => ({
      id: t.field({ type: 'UUID', description: 'The id of the event.', resolve: ({ event }) => event.id }),
      type: t.string({
        description: 'The type of the event, such as `ItemAdded`.',
        resolve: ({ event }) => event.type,
      }),
      position: t.field({
        type: 'Position',
        description: 'The position of the event in the log.',
        resolve: ({ event }) => tokenText(tokenOf(event)),
      }),
      streamId: t.id({ description: 'The stream of the event.', resolve: ({ event }) => event.streamId }),
      streamPosition: t.int({
        description: 'The position of the event in its stream: 1, 2, 3…',
        resolve: ({ event }) => event.streamPosition,
      }),
      recordedAt: t.field({
        type: 'DateTime',
        description: 'When the database recorded it.',
        resolve: ({ event }) => event.recordedAt,
      }),
      payload: t.field({
        type: 'JSON',
        nullable: true,
        description:
          'The payload, in the newest version of its type, with the fields that the viewer may read. Null if it may read none.',
        resolve: ({ event }) => event.payload,
      }),
      actor: t.string({
        nullable: true,
        description: 'Who caused the event.',
        resolve: ({ event }) => textOf(event.metadata.actor),
      }),
      correlationId: t.id({
        nullable: true,
        description: 'The same for all events of one request.',
        resolve: ({ event }) => textOf(event.metadata.correlationId),
      }),
      row: t.field({
        type: row,
        nullable: true,
        description: 'The row after the event. Null if the event removed it.',
        resolve: (version) => version.row,
      }),
    }),
  });
  const edge = builder.objectRef<RowVersion>(names.claim(`${graphql.type}EventEdge`, id)).implement({
    description: `An event that changed a \`${graphql.type}\`, with its cursor.`,
    fields: (t) => ({
      cursor: t.string({ description: 'The position of this event, for `after` and `before`.', resolve: cursorOf }),
      node: t.field({ type: event, description: 'The event.', resolve: (version) => version }),
    }),
  });
  return builder.objectRef<EventPage>(names.claim(`${graphql.type}EventConnection`, id)).implement({
    description: `A page of the events that changed a \`${graphql.type}\`.`,
    fields: (t) => ({
      edges: t.field({ type: [edge], description: 'The events with their cursors.', resolve: ({ rows }) => rows }),
      nodes: t.field({ type: [event], description: 'The events without their cursors.', resolve: ({ rows }) => rows }),
      pageInfo: t.field({
        type: pageInfoOf(builder),
        description: 'Whether there are more events, and the cursors of this page.',
        resolve: (page) => pageInfo(page, cursorOf),
      }),
      totalCount: t.int({
        description: 'The number of events in all pages.',
        args: {
          upTo: t.arg.int({
            required: false,
            description: 'Stops counting at this number: a result equal to it means this many or more.',
          }),
        },
        resolve: ({ total }, { upTo }) => Math.min(total, boundOf(upTo) ?? total),
      }),
    }),
  });
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
