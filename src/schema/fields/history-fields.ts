import type { InputRef } from '@pothos/core';
import type { GraphQLSchema } from 'graphql';
import type { PositionToken } from '../../events/position-token.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { type Projection, partialText, type RowKey } from '../../projections/projection/projection.ts';
import { ownRelations } from '../analysis/own-fields.ts';
import type { Builder } from '../builder/builder.ts';
import type { OperationContext } from '../contract/operation-context.ts';
import { badInput } from '../values/canonical-input.ts';

/** A point in time, by position or by time. */
export interface AsOfInput {
  readonly position?: PositionToken | null;
  readonly time?: string | null;
}

const asOfTypes = new WeakMap<Builder, InputRef<AsOfInput>>();

/** The argument type `AsOf`, one for all projections. */
export function asOfType(builder: Builder): InputRef<AsOfInput> {
  const known = asOfTypes.get(builder);
  if (known) return known;
  const type = builder.inputType('AsOf', {
    isOneOf: true,
    description: 'A moment of the event log: a position or a time.',
    fields: (t) => ({
      position: t.field({ type: 'Position', required: false, description: 'After the event at this position.' }),
      time: t.field({
        type: 'DateTime',
        required: false,
        description: 'After the events that were recorded up to this time.',
      }),
    }),
  });
  asOfTypes.set(builder, type);
  return type;
}

/** Returns the row as it was at that time. @throws RefoldError `QUERY_TOO_COMPLEX`, `HISTORY_CHANGED` */
export async function rowAsOf(
  { readModels, checkToken }: OperationContext,
  projection: Projection,
  key: RowKey,
  columns: readonly string[],
  { position: token, time }: AsOfInput,
): Promise<Row | null> {
  if (token) await checkToken?.(token);
  const position = token?.position;
  const head = position === undefined ? null : (await readModels.progress(projection)).head;
  if (position !== undefined && head !== null && position > head)
    throw badInput(`'asOf' is at position ${position}; the log ends at ${head}.`);
  const partial = partialText(projection);
  if (partial !== null && position !== undefined && position < projection.startAfter)
    throw badInput(`'asOf' is at position ${position}, and ${projection.id} is partial: ${partial}.`);
  const until = time === null || time === undefined ? undefined : Date.parse(time);
  const versions = await readModels.history(projection, key, columns, 'states');
  const then = versions.findLast(({ event }) =>
    until === undefined ? event.position <= (position ?? 0n) : !isAfter(event.recordedAt, time ?? '', until),
  );
  return then?.row ?? null;
}

/** Compares microseconds too if the milliseconds are equal. */
function isAfter(recordedAt: string, time: string, until: number): boolean {
  const recorded = Date.parse(recordedAt);
  return recorded === until ? microseconds(recordedAt) > microseconds(time) : recorded > until;
}

function microseconds(time: string): number {
  return Number((/\.\d{3}(\d{1,3})/.exec(time)?.[1] ?? '').padEnd(3, '0'));
}

/** @throws RefoldError `BAD_USER_INPUT` if a relation of a past row is selected, because it would lead to present rows */
export function refuseRelationsOfThePast(
  projection: Projection,
  selected: ReadonlySet<string>,
  schema: GraphQLSchema,
): void {
  const relations = [...Object.keys(projection.relations), ...ownRelations(schema, projection).keys()];
  const relation = relations.find((name) => selected.has(name));
  if (relation !== undefined)
    throw badInput(
      `'${relation}' of ${projection.graphql.type} leads to rows as they are now; with 'asOf', leave it out.`,
    );
}
