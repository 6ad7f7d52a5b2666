import type { InputRef, ObjectRef } from '@pothos/core';
import type { GlobalPosition } from '../events/global-position.ts';
import type { Projection, RowKey } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import { beforeRead } from './before-read.ts';
import type { Builder, Types } from './builder.ts';
import { badInput, canonicalKey } from './canonical-input.ts';
import type { ReadModels, RowVersion } from './operation-context.ts';
import { defaultPageSize, firstOf } from './page-arguments.ts';
import type { ProjectionTypes } from './projection-types.ts';
import { columnSelection, selectedFields } from './selected-columns.ts';
import type { TypeNames } from './type-names.ts';

/** A moment of the log. */
export interface AsOfInput {
  readonly position?: GlobalPosition | null;
  readonly time?: string | null;
}

const asOfTypes = new WeakMap<Builder, InputRef<AsOfInput>>();

/** The argument type `AsOf`, one for all projections. */
export function asOfType(builder: Builder): InputRef<AsOfInput> {
  const known = asOfTypes.get(builder);
  if (known) return known;
  const type = builder.inputType('AsOf', {
    isOneOf: true,
    description: 'A moment of the event log, by its position or by time.',
    fields: (t) => ({
      position: t.field({ type: 'Position', required: false, description: 'After the event at this position.' }),
      time: t.field({ type: 'DateTime', required: false, description: 'After what was recorded up to this time.' }),
    }),
  });
  asOfTypes.set(builder, type);
  return type;
}

/** The row as it was. @throws RefoldError `QUERY_TOO_COMPLEX` */
export async function rowAsOf(
  readModels: ReadModels,
  projection: Projection,
  key: RowKey,
  columns: readonly string[],
  { position, time }: AsOfInput,
): Promise<Row | null> {
  const head = position ? (await readModels.progress(projection)).head : null;
  if (position && head !== null && position > head)
    throw badInput(`'asOf' is at position ${position}; the log ends at ${head}.`);
  const until = time === null || time === undefined ? undefined : Date.parse(time);
  const versions = await readModels.history(projection, key, columns);
  const then = versions.findLast(({ event }) =>
    until === undefined ? event.position <= (position ?? 0n) : !isAfter(event.recordedAt, time ?? '', until),
  );
  return then?.row ?? null;
}

/** Microseconds count too, where the milliseconds are the same. */
function isAfter(recordedAt: string, time: string, until: number): boolean {
  const recorded = Date.parse(recordedAt);
  return recorded === until ? microseconds(recordedAt) > microseconds(time) : recorded > until;
}

function microseconds(time: string): number {
  return Number((/\.\d{3}(\d{1,3})/.exec(time)?.[1] ?? '').padEnd(3, '0'));
}

interface EventPage {
  readonly versions: readonly RowVersion[];
  readonly hasNextPage: boolean;
}

/** `cartSummaryEvents(cartId, first, after)`: what made a row what it is. */
export function addHistoryField(builder: Builder, names: TypeNames, types: ProjectionTypes): void {
  const { served, projection, keyArguments } = types;
  if (!projection.history) return;
  const page = eventPageOf(builder, names, types);
  const rowColumns = columnSelection(projection, [['nodes', 'row']]);
  const field = `${projection.graphql.single}Events`;
  builder.queryField(names.claimField('Query', field, projection.id), (t) =>
    t.field({
      type: page,
      description: 'The events that made the row what it is, in the order of the log, and the row after each of them.',
      args: {
        ...Object.fromEntries(
          keyArguments.map(([name, type, description]) => [name, t.arg({ type, required: true, description })]),
        ),
        first: t.arg.int({
          required: false,
          description: `Events from the start, or after \`after\`: ${defaultPageSize} where nothing is given, ${mostEvents} at most.`,
        }),
        after: t.arg({ type: 'Position', required: false, description: 'Only events after this position of the log.' }),
      } as never, // the key arguments are known at run time only
      async resolve(root, args: { first?: number | null; after?: GlobalPosition | null }, context, info) {
        refuseRelationsOfThePast(projection, selectedFields(info, [['nodes', 'row']]));
        const waiting = beforeRead(served, context, root?.after, info);
        if (waiting) await waiting;
        const key = canonicalKey(projection, args as Readonly<Record<string, unknown>>); // and what it does not look at
        const first = firstOf(args.first, mostEvents);
        // Payloads may hold what any column is made of.
        const isTold = selectedFields(info, [['nodes']]).has('payload');
        const columns = isTold ? Object.keys(projection.columns) : rowColumns(info);
        const all = await context.readModels.history(projection, key, columns);
        const rest = all.filter(({ event }) => event.position > (args.after ?? 0n));
        return { versions: rest.slice(0, first), hasNextPage: rest.length > first };
      },
    }),
  );
}

const mostEvents = 1000;

function eventPageOf(
  builder: Builder,
  names: TypeNames,
  { projection, row }: ProjectionTypes,
): ObjectRef<Types, EventPage> {
  const { graphql, id } = projection;
  const event = builder.objectRef<RowVersion>(names.claim(`${graphql.type}Event`, id)).implement({
    description: `An event that touched a ${graphql.type}.`,
    fields: (t) => ({
      id: t.field({ type: 'UUID', description: 'Names the event.', resolve: ({ event }) => event.id }),
      type: t.string({ description: 'What happened, such as `ItemAdded`.', resolve: ({ event }) => event.type }),
      position: t.field({
        type: 'Position',
        description: 'In the order of the whole log.',
        resolve: ({ event }) => event.position,
      }),
      streamId: t.id({ description: 'The stream that it is in.', resolve: ({ event }) => event.streamId }),
      streamPosition: t.int({ description: '1, 2, 3… in its stream.', resolve: ({ event }) => event.streamPosition }),
      recordedAt: t.field({
        type: 'DateTime',
        description: 'When the database recorded it.',
        resolve: ({ event }) => event.recordedAt,
      }),
      payload: t.field({
        type: 'JSON',
        nullable: true,
        description:
          'What the event says, in the newest shape of its type; null for viewers who may not read every column.',
        resolve: ({ event }) => event.payload,
      }),
      actor: t.string({
        nullable: true,
        description: 'Who did it.',
        resolve: ({ event }) => textOf(event.metadata.actor),
      }),
      correlationId: t.id({
        nullable: true,
        description: 'The same for all that came of one request.',
        resolve: ({ event }) => textOf(event.metadata.correlationId),
      }),
      row: t.field({
        type: row,
        nullable: true,
        description: 'The row after the event; null where it removed the row.',
        resolve: (version) => version.row,
      }),
    }),
  });
  return builder.objectRef<EventPage>(names.claim(`${graphql.type}EventPage`, id)).implement({
    description: `Some of the events that touched a \`${graphql.type}\`.`,
    fields: (t) => ({
      nodes: t.field({ type: [event], description: 'The events.', resolve: ({ versions }) => versions }),
      hasNextPage: t.boolean({ description: 'Whether there are more.', resolve: (page) => page.hasNextPage }),
    }),
  });
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** @throws RefoldError `BAD_USER_INPUT` where a row of the past should lead to rows of the present */
export function refuseRelationsOfThePast(projection: Projection, selected: ReadonlySet<string>): void {
  const relation = Object.keys(projection.relations).find((name) => selected.has(name));
  if (relation !== undefined)
    throw badInput(
      `'${relation}' of ${projection.graphql.type} leads to rows as they are now; with 'asOf', leave it out.`,
    );
}
