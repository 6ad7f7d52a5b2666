import type { StandardSchemaV1 } from '@standard-schema/spec';
import { RefoldError } from '../errors.ts';
import { reasonOf, withoutTraps } from '../thrown.ts';
import type { RecordedEvent } from './event.ts';
import { type EventFamily, inputIssues, payloadVersion, upcast } from './event-family.ts';

/** Why the payload of an event can't be read. */
export type UnreadablePayload = RefoldError<'PAYLOAD_VERSION_UNKNOWN' | 'UPCAST_FAILED'>;

interface Unreadable {
  readonly error: UnreadablePayload;
  readonly stored: unknown;
}

const unreadableEvents = new WeakMap<object, Unreadable>();

/** An event whose payload is not read yet. */
export type UnreadEvent = { -readonly [Part in keyof RecordedEvent]: RecordedEvent[Part] };

/**
 * Sets the payload of an event from its stored form, in the newest version of its type. If this program does not know the stored version, or
 * an upcaster fails, the event becomes unreadable: its payload is a getter that throws the error, so no code can take it for another shape.
 *
 * @returns whether upcasters ran
 */
export function readPayload(event: UnreadEvent, family: EventFamily, stored: unknown): boolean {
  try {
    if (event.payloadVersion > payloadVersion(family, event.type)) throw versionUnknown(family, event);
    event.payload = upcast(family, event.type, event.payloadVersion, stored);
  } catch (thrown) {
    const error = withoutTraps(thrown);
    const known = isVersionUnknown(error) ? error : upcastFailed(family, event, error);
    unreadableEvents.set(event, { error: known, stored });
    Object.defineProperty(event, 'payload', {
      enumerable: true, // a copy of the event must fail too, not lack its payload
      get() {
        throw known;
      },
    });
  }
  return event.payloadVersion < payloadVersion(family, event.type);
}

/** Returns why the event's payload can't be read; undefined if it can. Check it before code of the application receives the event. */
export function unreadable(event: RecordedEvent): UnreadablePayload | undefined {
  return unreadableEvents.get(event)?.error;
}

/** The payload, or the stored one if it can't be read: to measure it, or to remove its values from messages. */
export function payloadInAnyShape(event: RecordedEvent): unknown {
  const found = unreadableEvents.get(event);
  return found ? found.stored : event.payload;
}

/** Whether this program does not know the payload version of an event. A process that knows it can continue. */
export function isVersionUnknown(error: unknown): error is RefoldError<'PAYLOAD_VERSION_UNKNOWN'> {
  return error instanceof RefoldError && error.code === 'PAYLOAD_VERSION_UNKNOWN';
}

/**
 * Why the schema of its type refuses the payload of an event; null if it accepts it. A promise if the schema is asynchronous.
 */
export function invalidPayload(family: EventFamily, event: RecordedEvent): string | null | Promise<string | null> {
  const schema = Object.hasOwn(family.schemas, event.type) ? family.schemas[event.type] : undefined;
  const validated = schema?.['~standard'].validate(event.payload) ?? { value: event.payload };
  return validated instanceof Promise ? validated.then(problemIn) : problemIn(validated);
}

function problemIn({ issues }: StandardSchemaV1.Result<unknown>): string | null {
  if (!issues) return null;
  return inputIssues(issues)
    .map(({ path, message }) => `${path.join('.') || '(root)'}: ${message}`)
    .join('; ');
}

/**
 * Why the result of the event's upcasters does not match the schema of its type; null if it does, if nothing was upcast, or if the schema is
 * asynchronous.
 */
export function invalidUpcast(families: readonly EventFamily[], event: RecordedEvent): string | null {
  const family = families.find(({ name }) => name === event.family);
  if (!family || event.payloadVersion === payloadVersion(family, event.type)) return null;
  const problem = invalidPayload(family, event);
  if (!(problem instanceof Promise)) return problem;
  problem.catch(() => {}); // nobody waits for it
  return null;
}

type EventPlace = Pick<RecordedEvent, 'type' | 'position' | 'streamId' | 'payloadVersion'>;

/** The error if an event has a payload version that this program does not know. The message names no stream: stream ids may be personal. */
export function versionUnknown(
  family: EventFamily,
  { type, position, streamId, payloadVersion: found }: EventPlace,
): RefoldError<'PAYLOAD_VERSION_UNKNOWN'> {
  const known = payloadVersion(family, type);
  const newest = known === 1 ? 'version 1 only' : `versions up to ${known}`;
  return new RefoldError(
    'PAYLOAD_VERSION_UNKNOWN',
    `The event '${type}' of ${family.name} at position ${position} has payload version ${found}; this process knows ${newest}.`,
    { family: family.name, type, payloadVersion: found, known, position: position.toString(), streamId },
  );
}

function upcastFailed(family: EventFamily, event: EventPlace, cause: unknown): RefoldError<'UPCAST_FAILED'> {
  const { type, position, streamId, payloadVersion: version } = event;
  const reason = reasonOf(cause);
  return new RefoldError(
    'UPCAST_FAILED',
    `An upcaster of '${type}' of ${family.name} failed at position ${position} (stream '${streamId}', payload version ${version}): ${reason}`,
    { family: family.name, type, payloadVersion: version, position: position.toString(), streamId },
    { cause },
  );
}
