import type { EventMetadata, RecordedEvent } from '../../events/event.ts';
import { type EventFamily, payloadVersion as newestVersion } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';
import { EventPace, type OnSlowEvent } from '../../events/event-pace.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { readPayload, type UnreadEvent } from '../../events/read-payload.ts';
import { copiedText } from '../postgres/copy-rows.ts';
import { isoTimestamp } from '../statements/column-parsers.ts';
import type { PageBytes } from './page-bytes.ts';

/** The columns that a page decoder reads, in its order. The columns that identify an event's kind are adjacent, and JSON is last. */
export const copiedColumns =
  'position, stream_position, recorded_at, id, payload_version, family, type, stream_id, metadata, payload';

/** Decodes copied rows to events. Overwrites their bytes. */
export type PageDecoder = (page: PageBytes) => Promise<RecordedEvent[]>;

/** The position of the last row, read before decoding; undefined if there are no rows. */
export function lastCopiedPosition({ bytes, ends }: PageBytes): GlobalPosition | undefined {
  if (ends.length === 0) return undefined;
  const start = ends.at(-2) ?? 0;
  return globalPosition(BigInt(numberIn(bytes, start, tabFrom(bytes, start))));
}

/**
 * Creates a decoder for events of these families.
 *
 * It moves all JSON of a page to the start of the page's bytes, where it forms one array that is parsed in one call. Each text of an event
 * is created on its own: a projection that keeps a key in memory must not keep a whole page or a large payload alive with it.
 */
export function createPageDecoder(families: ReadonlyMap<string, EventFamily>, onSlowEvent?: OnSlowEvent): PageDecoder {
  const kinds = createKinds(families);

  return async ({ bytes, ends }) => {
    if (ends.length === 0) return [];
    const events: UnreadEvent[] = [];
    const readers: (EventFamily | undefined)[] = [];
    let json = 1; // after the bracket
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
      readers.push(kind.readBy);
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
    await readPayloads(events, readers, parsed, new EventPace(onSlowEvent));
    return events;
  };
}

/** `parsed`: metadata and payload of each event in turn. `readers`: the families that read them. */
async function readPayloads(
  events: readonly UnreadEvent[],
  readers: readonly (EventFamily | undefined)[],
  parsed: readonly unknown[],
  pace: EventPace,
): Promise<void> {
  pace.start();
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as UnreadEvent; // index < length
    event.payload = parsed[index * 2 + 1];
    const reader = readers[index];
    event.metadata = parsed[index * 2] as EventMetadata; // the column holds objects only
    if (reader && readPayload(event, reader, event.payload) && pace.after(event)) await pace.turn();
  }
}

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

/** The next tab. Columns are short: a call into the runtime takes longer than this loop. */
function tabFrom(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== tab) at++;
  return at;
}

/** Parses a whole number. Positions are below 2^53. */
function numberIn(bytes: Buffer, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) number = number * 10 + ((bytes[at] ?? zero) - zero);
  return number;
}

/** Like {@link isoTimestamp}, but converts the bytes in place if no digits have to be added. */
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
 * Moves JSON towards the start and returns its new end. JSON from PostgreSQL has no control characters, so the only character that COPY
 * escapes in it is the backslash.
 */
function moveUnescaped(bytes: Buffer, target: number, from: number, to: number): number {
  let written = target;
  for (let at = from; at < to; at++) {
    if (bytes[at] === backslash) at++;
    bytes[written++] = bytes[at] ?? backslash;
  }
  return written;
}

/** What events of one type and payload version have in common. The names are the declared ones. */
interface EventKind {
  readonly family: string;
  readonly type: string;
  readonly payloadVersion: number;
  /** The family that must read the payload; undefined if it is stored in the newest version. */
  readonly readBy: EventFamily | undefined;
}

/** The kinds of events seen so far. Bounded by the declared types and payload versions, because only declared types are read. */
interface EventKinds {
  /** Finds the kind by the bytes of a copied row's payload version, family and type. */
  find(bytes: Buffer, from: number, to: number): EventKind;
}

interface KnownKind extends EventKind {
  readonly bytes: Buffer;
}

/** Looks up kinds by their bytes. Creating a string for each event, to look it up, takes several times as long. */
function createKinds(families: ReadonlyMap<string, EventFamily>): EventKinds {
  const known = new Map<number, KnownKind[]>();
  return {
    find(bytes, from, to) {
      // All kinds in one bucket have the same length.
      const place = ((to - from) << 16) | ((bytes[to - 1] ?? 0) << 8) | (bytes[to - 4] ?? 0);
      let kinds = known.get(place);
      if (!kinds) {
        kinds = [];
        known.set(place, kinds);
      }
      for (const kind of kinds) if (isAt(bytes, from, kind.bytes)) return kind;
      const made = makeKind(families, Buffer.from(bytes.subarray(from, to)));
      kinds.push(made);
      return made;
    },
  };
}

function isAt(bytes: Buffer, from: number, expected: Buffer): boolean {
  for (let index = 0; index < expected.length; index++) if (bytes[from + index] !== expected[index]) return false;
  return true;
}

function makeKind(families: ReadonlyMap<string, EventFamily>, bytes: Buffer): KnownKind {
  const [version, name, storedType] = bytes.toString('latin1').split('\t') as [string, string, string]; // three ASCII columns
  const payloadVersion = Number(version);
  const family = familyStoredAs(families, name);
  const type = family?.declaredTypes[storedType] ?? storedType;
  const readBy = family && payloadVersion !== newestVersion(family, type) ? family : undefined;
  return { family: family?.name ?? name, type, payloadVersion, readBy, bytes };
}
