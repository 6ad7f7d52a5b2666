import type { EventMetadata, RecordedEvent } from '../../events/event.ts';
import { type EventFamily, upcast } from '../../events/event-family.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isoTimestamp } from '../postgres/column-parsers.ts';
import { copiedText } from '../postgres/copy-rows.ts';
import { createKinds } from './event-kinds.ts';
import type { PageBytes } from './page-bytes.ts';

/** The columns that a page decoder takes, in its order: what tells the kind of an event side by side, and JSON at the end. */
export const copiedColumns =
  'position, stream_position, recorded_at, id, payload_version, family, type, stream_id, metadata, payload';

/** Makes events of copied rows, and uses up their bytes. */
export type PageDecoder = (page: PageBytes) => RecordedEvent[];

/** The position in the last of these rows, before they are decoded; undefined where there is none. */
export function lastCopiedPosition({ bytes, ends }: PageBytes): GlobalPosition | undefined {
  if (ends.length === 0) return undefined;
  const start = ends.at(-2) ?? 0;
  return globalPosition(BigInt(numberIn(bytes, start, tabFrom(bytes, start))));
}

/**
 * Makes a decoder for events of these families.
 *
 * The JSON of a page is moved together to the beginning of its bytes, where it becomes one array that is parsed in one go. Each text of an event is
 * made for itself: a key that a projection keeps in memory must hold neither a whole page there nor a large payload.
 */
export function createPageDecoder(families: ReadonlyMap<string, EventFamily>): PageDecoder {
  const kinds = createKinds(families);

  return ({ bytes, ends }) => {
    if (ends.length === 0) return [];
    const events: Unfilled[] = [];
    const upcasts: (EventFamily | undefined)[] = [];
    let json = 1; // behind the bracket
    let start = 0;
    let nextEscape = bytes.indexOf(backslash);
    for (const end of ends) {
      const positionEnd = tabFrom(bytes, start);
      const streamPositionEnd = tabFrom(bytes, positionEnd + 1);
      const recordedEnd = tabFrom(bytes, streamPositionEnd + 1);
      const idEnd = recordedEnd + 1 + uuidLength;
      const kindEnd = tabFrom(bytes, tabFrom(bytes, tabFrom(bytes, idEnd + 1) + 1) + 1);
      const streamEnd = tabFrom(bytes, kindEnd + 1);
      const escaped = nextEscape !== -1 && nextEscape < end;

      const kind = kinds.find(bytes, idEnd + 1, kindEnd);
      const streamId = bytes.toString('utf8', kindEnd + 1, streamEnd);
      upcasts.push(kind.upcasts);
      events.push({
        id: bytes.toString('latin1', recordedEnd + 1, idEnd),
        family: kind.family,
        streamId: escaped ? copiedText(streamId) : streamId,
        streamPosition: numberIn(bytes, positionEnd + 1, streamPositionEnd),
        position: globalPosition(BigInt(numberIn(bytes, start, positionEnd))),
        type: kind.type,
        payload: undefined,
        payloadVersion: kind.payloadVersion,
        metadata: noMetadata,
        recordedAt: timestampIn(bytes, streamPositionEnd + 1, recordedEnd),
      });

      const metadataEnd = bytes.indexOf(tab, streamEnd + 1);
      if (escaped) {
        json = moveUnescaped(bytes, json, streamEnd + 1, metadataEnd);
        bytes[json++] = comma;
        json = moveUnescaped(bytes, json, metadataEnd + 1, end - 1);
        bytes[json++] = comma;
        nextEscape = bytes.indexOf(backslash, end);
      } else {
        bytes[metadataEnd] = comma;
        bytes[end - 1] = comma;
        bytes.copyWithin(json, streamEnd + 1, end);
        json += end - streamEnd - 1;
      }
      start = end;
    }
    bytes[0] = openingBracket;
    bytes[json - 1] = closingBracket;

    const parsed: unknown[] = JSON.parse(bytes.toString('utf8', 0, json));
    for (let index = 0; index < events.length; index++) {
      const event = events[index] as Unfilled; // index < length
      const payload = parsed[index * 2 + 1];
      const upcastBy = upcasts[index];
      event.metadata = parsed[index * 2] as EventMetadata; // the column holds objects only
      event.payload = upcastBy ? upcast(upcastBy, event.type, event.payloadVersion, payload) : payload;
    }
    return events;
  };
}

/** An event whose JSON is not parsed yet. */
type Unfilled = { -readonly [Part in keyof RecordedEvent]: RecordedEvent[Part] };

const noMetadata: EventMetadata = Object.freeze({});
const uuidLength = 36;

const tab = 9;
const space = 32;
const plus = 43;
const comma = 44;
const dot = 46;
const zero = 48;
const letterT = 84;
const letterZ = 90;
const openingBracket = 91;
const backslash = 92;
const closingBracket = 93;

/** The next tab. Short columns are looked through here: calling into the runtime takes longer. */
function tabFrom(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== tab) at++;
  return at;
}

/** A whole number in digits. Positions are below 2^53. */
function numberIn(bytes: Buffer, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) number = number * 10 + ((bytes[at] ?? zero) - zero);
  return number;
}

/** As {@link isoTimestamp}, whose work is done in the bytes where no digits are to be added. */
function timestampIn(bytes: Buffer, from: number, to: number): string {
  const isUsual =
    to - from >= '2026-01-31 12:00:00.123+00'.length &&
    bytes[from + 10] === space &&
    bytes[from + 19] === dot &&
    bytes[to - 3] === plus &&
    bytes[to - 2] === zero &&
    bytes[to - 1] === zero;
  if (!isUsual) return isoTimestamp(bytes.toString('latin1', from, to));
  bytes[from + 10] = letterT;
  bytes[to - 3] = letterZ;
  return bytes.toString('latin1', from, to - 2);
}

/**
 * Moves JSON towards the beginning, and tells where it ends then. What PostgreSQL writes as JSON has no control characters, so that COPY escapes
 * nothing in it but backslashes.
 */
function moveUnescaped(bytes: Buffer, target: number, from: number, to: number): number {
  let written = target;
  for (let at = from; at < to; at++) {
    if (bytes[at] === backslash) at++;
    bytes[written++] = bytes[at] ?? backslash;
  }
  return written;
}
