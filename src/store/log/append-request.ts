import { randomUUID } from 'node:crypto';
import { type InputIssue, InvalidInput } from '../../errors.ts';
import type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from '../../events/event.ts';
import { type EventFamily, type NewEventOf, payloadVersion, validateEvent } from '../../events/event-family.ts';
import { eventMembers, type PreparedAppend, type WrittenAppend } from './append-statement.ts';

/** One stream of an append. */
export interface StreamAppend<F extends EventFamily = EventFamily> {
  readonly family: F;
  readonly streamId: string;
  /** None: the append is written only if the stream has the expected version. */
  readonly events: readonly NewEventOf<F>[];
  /** @default 'any' */
  readonly expectedVersion?: ExpectedVersion;
}

export interface AppendOptions {
  /** Names the append: a second one with the same key writes nothing and gives the first one's result. Up to 1 KiB. */
  readonly idempotencyKey?: string;
  /** Of what is asked for under the key: another one under the same key is refused. */
  readonly idempotencyFingerprint?: string;
  /** Goes with each of the events; an event's own keys win. */
  readonly metadata?: EventMetadata;
}

/** An append that was checked: ready to be sent, and what its events will be once they have positions. */
export interface CheckedAppend {
  readonly prepared: PreparedAppend;
  /** In their order. */
  readonly events: readonly UnplacedEvent[];
  recorded(written: WrittenAppend): RecordedEvent[];
}

/** An event before it is written: where and when is not known yet. */
export type UnplacedEvent = Omit<RecordedEvent, 'position' | 'streamPosition' | 'recordedAt'>;

/**
 * Checks everything that can be checked without the database.
 *
 * @throws InvalidInput `BAD_USER_INPUT` for the arguments, `INVALID_PAYLOAD` for an event's payload; RefoldError `UNKNOWN_EVENT_TYPE`.
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
      ofStream.push(event);
      members.push(json);
    }
    events.push(ofStream);
    parts.push({ family: family.name, streamId, expectedVersion, events: members });
  }
  let placed: { readonly written: WrittenAppend; readonly events: RecordedEvent[] } | undefined;
  return {
    prepared: {
      parts,
      idempotencyKey: options.idempotencyKey,
      idempotencyFingerprint: options.idempotencyFingerprint,
    },
    events: events.flat(),
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
  const { type, payload } = await validateEvent(family, newEvent);
  const payloadJson = storableJson(payload ?? null, `The payload of ${family.name}'s '${type}'`);
  const metadataJson = storableJson({ ...shared, ...newEvent.metadata }, `The metadata of ${family.name}'s '${type}'`);
  const event: UnplacedEvent = {
    id: newEvent.id?.toLowerCase() ?? randomUUID(),
    family: family.name,
    streamId,
    type,
    payload: JSON.parse(payloadJson), // as it will be read, whatever JSON leaves out
    payloadVersion: payloadVersion(family, type),
    metadata: metadataJson === '{}' ? {} : JSON.parse(metadataJson),
  };
  return { event, json: eventMembers({ ...event, payloadJson, metadataJson }) };
}

function place(streams: readonly UnplacedEvent[][], written: WrittenAppend): RecordedEvent[] {
  const { positions, recordedAt } = written;
  let next = 0;
  return streams.flatMap((events, stream) => {
    const before = (written.streams[stream]?.version ?? 0) - events.length;
    return events.map((event, index) => {
      const position = positions[next++] as RecordedEvent['position']; // one for each event
      return { ...event, position, streamPosition: before + index + 1, recordedAt };
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
    if (typeof expectedVersion === 'number' && !(Number.isSafeInteger(expectedVersion) && expectedVersion >= 0)) {
      yield { path: ['expectedVersion'], message: `a whole number from 0 on is needed, found ${expectedVersion}.` };
    }
    const name = `${family.name} ${streamId}`;
    if (seen.has(name))
      yield { path: ['streams'], message: `'${streamId}' of ${family.name} is named twice; put its events together.` };
    seen.add(name);
    for (const [index, { id }] of events.entries()) {
      if (id !== undefined && !uuid.test(id))
        yield { path: ['events', index, 'id'], message: `a UUID is needed, found '${id}'.` };
    }
  }
}

// What an index entry can hold, with room for the other columns.
const longestName = 1024;

function* nameIssues(name: string, path: InputIssue['path']): Generator<InputIssue> {
  if (name === '') yield { path, message: 'must not be empty.' };
  if (Buffer.byteLength(name) > longestName) yield { path, message: `must not be longer than ${longestName} bytes.` };
  if (name.includes('\u0000') || !name.isWellFormed())
    yield { path, message: 'has characters that can’t be stored (NUL or half of a surrogate pair).' };
}

// JSON.stringify writes NUL and lone surrogates, and nothing else, as escapes of these forms; jsonb refuses both.
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

function storableJson(value: unknown, subject: string): string {
  const json = JSON.stringify(value);
  if (unstorable.test(json)) {
    const message = 'has characters that can’t be stored (NUL or half of a surrogate pair).';
    throw new InvalidInput('INVALID_PAYLOAD', subject, [{ path: [], message }]);
  }
  return json;
}
