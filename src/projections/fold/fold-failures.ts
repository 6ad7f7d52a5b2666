import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { payloadInAnyShape } from '../../events/read-payload.ts';
import { errorOf, messageOf, stackOf } from '../../thrown.ts';
import type { Row } from '../columns/row-codec.ts';
import { hidesKey, problemWithoutValue, withoutValues } from '../declaration/hidden-values.ts';
import { keyText, type Projection, type RowKey } from '../projection/projection.ts';

/** Whether an event could not be folded: `key` or `evolve` failed, or the resulting row was refused. */
export function isEvolveFailure(error: unknown): error is RefoldError {
  return error instanceof RefoldError && error.code === 'EVOLVE_FAILED';
}

/** The error if `key`, an upcaster or `evolve` threw, or returned something that the table cannot store. @param row what `evolve` received */
export function evolveFailed(
  projection: Projection,
  event: RecordedEvent,
  part: 'key' | 'upcast' | 'evolve',
  thrown: unknown,
  row: Row | null = null,
): RefoldError {
  const cause = errorOf(thrown);
  const reason = messageOf(thrown);
  const mutation = cause instanceof TypeError && /read only|not extensible|Cannot delete/.test(reason);
  const hint = mutation ? ' Rows and events are immutable: return a new row instead of changing the old one.' : '';
  const failed = `${projection.id}: ${part} of '${event.type}' failed at ${placeOf(projection, event)}: `;
  const fields = fieldsOf(projection, event, part);
  if (projection.hidden.size === 0)
    return new RefoldError('EVOLVE_FAILED', `${failed}${reason}${hint}`, fields, { cause });
  // Whole: a hidden value that is cut in two would not be found. In a longer one, a search would take too long.
  const hide = (text: string) =>
    text.length > longestSearched
      ? `its message of ${text.length} characters is left out`
      : withoutValues(text, payloadInAnyShape(event), event.metadata, row, event.streamId);
  const shown = problemWithoutValue(cause) ?? hide(reason);
  // Logs include the cause's message, and its stack starts with that message.
  const hidden = new Error(shown);
  hidden.stack = hide(stackOf(thrown) ?? '').replace(hide(reason), () => shown);
  return new RefoldError('EVOLVE_FAILED', `${failed}${shown}${hint}`, fields, { cause: hidden });
}

/** The error of an event whose payload version is unknown, as the projection may report it. */
export function versionUnknownTo(
  projection: Projection,
  error: RefoldError<'PAYLOAD_VERSION_UNKNOWN'>,
): RefoldError<'PAYLOAD_VERSION_UNKNOWN'> {
  if (!hidesKey(projection)) return error;
  const { streamId: _, ...fields } = error.fields;
  return new RefoldError(error.code, error.message, fields);
}

/** Why the database refuses a row. */
export interface RowRefusal {
  /** Contains no values. */
  readonly reason: string;
  /** The column that caused the refusal, if known. */
  readonly column?: string | undefined;
  /** Whether another row already has this unique value. */
  readonly taken: boolean;
}

/** The error if the database refuses the row that an event leads to. */
export function rowRefused(
  projection: Projection,
  event: RecordedEvent,
  key: RowKey | null,
  { reason, column, taken }: RowRefusal,
): RefoldError {
  const row = key === null || hidesKey(projection) ? 'the row' : `the row ${keyText(key)}`;
  return new RefoldError(
    'EVOLVE_FAILED',
    `${projection.id}: the database refuses ${row} that '${event.type}' leads to at ${placeOf(projection, event)}: ${reason}`,
    { ...fieldsOf(projection, event, 'row'), ...(column === undefined ? {} : { column }), ...(taken ? { taken } : {}) },
  );
}

/** The error if the database refuses the result of `evolveSql` for an event. */
export function sqlFoldFailed(projection: Projection, event: RecordedEvent, refusal: RowRefusal): RefoldError {
  const { reason, column } = refusal;
  const stream = hidesKey(projection) ? '' : ` of stream '${event.streamId}'`;
  return new RefoldError(
    'EVOLVE_FAILED',
    `${projection.id}: evolveSql failed at position ${event.position} ('${event.type}'${stream}): ${reason}`,
    { ...fieldsOf(projection, event, 'evolveSql'), ...(column === undefined ? {} : { column }) },
  );
}

const longestSearched = 1_000_000;

function placeOf(projection: Projection, { position, streamId, streamPosition }: RecordedEvent): string {
  return hidesKey(projection)
    ? `position ${position} (event ${streamPosition} of its stream)`
    : `position ${position} (stream '${streamId}', event ${streamPosition})`;
}

function fieldsOf(projection: Projection, event: RecordedEvent, part: string): Record<string, unknown> {
  const { type, position, streamId } = event;
  return {
    projection: projection.id,
    part,
    type,
    position: position.toString(),
    ...(hidesKey(projection) ? {} : { streamId }),
  };
}
