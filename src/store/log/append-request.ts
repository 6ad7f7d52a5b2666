import { randomUUID } from 'node:crypto';
import { type InputIssue, InvalidInput } from '../../errors.ts';
import type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from '../../events/event.ts';
import { type EventFamily, type NewEventOf, payloadVersion, validateEvent } from '../../events/event-family.ts';
import { expectedVersionProblem } from '../../events/expected-version.ts';
import { loggedJson } from '../../events/logged-json.ts';
import type { TextCheck } from '../../projections/fold/unfitting-texts.ts';
import { eventMembers, type PreparedAppend, type WrittenAppend } from './append-statement.ts';

/** One stream of an append. */
export interface StreamAppend<F extends EventFamily = EventFamily> {
  readonly family: F;
  readonly streamId: string;
  /** If empty, the append only checks that the stream has the expected version. */
  readonly events: readonly NewEventOf<F>[];
  /** @default 'any' */
  readonly expectedVersion?: ExpectedVersion;
}

export interface AppendOptions {
  /** Identifies the append. A second append with the same key writes nothing and returns the first one's result. At most 1 KiB. */
  readonly idempotencyKey?: string;
  /** Fingerprint of the request that the key belongs to. The same key with another fingerprint is refused. */
  readonly idempotencyFingerprint?: string;
  /** Added to each event's metadata. If an event sets the same key, the event's value wins. */
  readonly metadata?: EventMetadata;
  /** What the append is part of, as a `traceparent`, if it is recorded. */
  readonly cause?: string | undefined;
  /** Refuses events before they are sent. Imported events are not checked. @default none */
  readonly checkTexts?: TextCheck | undefined;
}

/** A checked append: ready to send, and able to build its recorded events once they have positions. */
export interface CheckedAppend {
  readonly prepared: PreparedAppend;
  /** In the order of the append. */
  readonly events: readonly UnplacedEvent[];
  /** What the append is part of, as a `traceparent`, if it is recorded. */
  readonly cause: string | undefined;
  recorded(written: WrittenAppend): RecordedEvent[];
}

/** An event before it is written. Its positions and time are not known yet. */
export type UnplacedEvent = Omit<RecordedEvent, 'position' | 'streamPosition' | 'recordedAt'>;

/**
 * Checks everything that can be checked without the database.
 *
 * @throws InvalidInput `BAD_USER_INPUT` for invalid arguments, `INVALID_PAYLOAD` for an invalid payload; RefoldError `UNKNOWN_EVENT_TYPE`.
 */
export async function checkAppend(streams: readonly StreamAppend[], options: AppendOptions): Promise<CheckedAppend> {
  const issues = [...argumentIssues(streams, options)];
  if (issues.length > 0) throw new InvalidInput('BAD_USER_INPUT', 'The append', issues);

  const events: UnplacedEvent[][] = [];
  const parts = [];
  for (const { family, streamId, events: newEvents, expectedVersion = 'any' } of streams) {
    const ofStream: UnplacedEvent[] = [];
    const members: string[] = [];
    for (const newEvent of newEvents) {
      const { event, json } = await checkEvent(family, streamId, newEvent, options.metadata);
      options.checkTexts?.(event, json);
      ofStream.push(event);
      members.push(json);
    }
    events.push(ofStream);
    parts.push({ family: family.name, storedFamily: family.storedName, streamId, expectedVersion, events: members });
  }
  let placed: { readonly written: WrittenAppend; readonly events: RecordedEvent[] } | undefined;
  return {
    prepared: {
      parts,
      idempotencyKey: options.idempotencyKey,
      idempotencyFingerprint: options.idempotencyFingerprint,
    },
    events: events.flat(),
    cause: options.cause,
    recorded(written) {
      if (placed?.written !== written) placed = { written, events: place(events, written) };
      return placed.events;
    },
  };
}

async function checkEvent(
  family: EventFamily,
  streamId: string,
  newEvent: NewEvent,
  shared: EventMetadata | undefined,
) {
  const { type, payload: given } = await validateEvent(family, newEvent);
  const payload = loggedJson(given ?? null, `The payload of ${family.name}'s '${type}'`);
  const metadata = loggedJson({ ...shared, ...newEvent.metadata }, `The metadata of ${family.name}'s '${type}'`);
  const event: UnplacedEvent = {
    id: newEvent.id?.toLowerCase() ?? randomUUID(),
    family: family.name,
    streamId,
    type,
    payload,
    payloadVersion: payloadVersion(family, type),
    metadata: metadata as EventMetadata, // an object, as given
  };
  const stored = { family: family.storedName, type: family.typeNames[type]?.[0] ?? type };
  return {
    event,
    json: eventMembers({
      ...event,
      ...stored,
      payloadJson: JSON.stringify(payload),
      metadataJson: JSON.stringify(metadata),
    }),
  };
}

function place(streams: readonly UnplacedEvent[][], written: WrittenAppend): RecordedEvent[] {
  const { positions, recordedAt } = written;
  let next = 0;
  return streams.flatMap((events, stream) => {
    const before = (written.streams[stream]?.version ?? 0) - events.length;
    return events.map((event, index) => {
      const position = positions[next++] as RecordedEvent['position']; // one position for each event
      const { id, family, streamId, type, payload, payloadVersion, metadata } = event;
      const streamPosition = before + index + 1;
      // Its members are in the order that readers of the log get.
      return { id, family, streamId, streamPosition, position, type, payload, payloadVersion, metadata, recordedAt };
    });
  });
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function* argumentIssues(streams: readonly StreamAppend[], { idempotencyKey }: AppendOptions): Generator<InputIssue> {
  if (idempotencyKey !== undefined) yield* nameIssues(idempotencyKey, ['idempotencyKey']);
  if (streams.every(({ events }) => events.length === 0))
    yield { path: ['events'], message: 'at least one event is needed.' };
  const seen = new Set<string>();
  for (const { family, streamId, events, expectedVersion } of streams) {
    yield* nameIssues(streamId, ['streamId']);
    const problem = expectedVersion === undefined ? undefined : expectedVersionProblem(expectedVersion);
    if (problem !== undefined) yield { path: ['expectedVersion'], message: problem };
    const name = `${family.name} ${streamId}`;
    if (seen.has(name))
      yield { path: ['streams'], message: `'${streamId}' of ${family.name} is listed twice; combine its events.` };
    seen.add(name);
    for (const [index, { id }] of events.entries()) {
      if (id !== undefined && !uuid.test(id))
        yield { path: ['events', index, 'id'], message: `a UUID is needed, found '${id}'.` };
    }
  }
}

// The size limit of an index entry, less room for the other columns.
const longestName = 1024;

function* nameIssues(name: string, path: InputIssue['path']): Generator<InputIssue> {
  if (name === '') yield { path, message: 'must not be empty.' };
  if (Buffer.byteLength(name) > longestName) yield { path, message: `must not be longer than ${longestName} bytes.` };
  if (name.includes('\u0000') || !name.isWellFormed())
    yield { path, message: 'has characters that can’t be stored (NUL or half of a surrogate pair).' };
}
