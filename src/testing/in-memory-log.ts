import { ConcurrencyConflict } from '../errors.ts';
import type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from '../events/event.ts';
import { type EventFamily, payloadVersion as newestVersion, validateEvent } from '../events/event-family.ts';
import { globalPosition, laterPosition } from '../events/global-position.ts';
import { loggedJson } from '../events/logged-json.ts';
import { readPayload, type UnreadEvent } from '../events/read-payload.ts';
import type { EventSource } from '../runtime/consumers/event-source.ts';
import { createSignal } from '../runtime/scheduling/signal.ts';

/** An event of a test's history. */
export interface GivenEvent<Type extends string = string> extends NewEvent<Type> {
  /**
   * The payload version, for a payload in an older shape. It is stored as it is, and upcast when the event is read.
   * @default the newest version of the type
   */
  readonly payloadVersion?: number;
}

export interface InMemoryAppend {
  readonly family: EventFamily;
  readonly streamId: string;
  readonly events: readonly GivenEvent[];
  /** @default 'any' */
  readonly expectedVersion?: ExpectedVersion;
}

/** A log without a database. It checks payloads and versions like the real one, and assigns the same positions in stream and log. */
export interface InMemoryLog {
  /** @throws InvalidInput, ConcurrencyConflict; nothing is written in that case */
  append(append: InMemoryAppend): Promise<readonly RecordedEvent[]>;
  /** All events, in the order of the log. */
  readonly events: readonly RecordedEvent[];
  stream(family: EventFamily, streamId: string): readonly RecordedEvent[];
  /** A source for consumers. It also delivers events that are appended later. */
  readonly source: EventSource;
}

/** @param options.now recording time of every event, ISO 8601 UTC, or a function that returns the time of the next ones */
export function createInMemoryLog(options: { readonly now?: string | (() => string) } = {}): InMemoryLog {
  const { now = '2026-01-01T00:00:00.000Z' } = options;
  const events: RecordedEvent[] = [];
  // By stream, so an append does not search the log.
  const streams = new Map<string, RecordedEvent[]>();

  const grown = createSignal();
  const source: EventSource = {
    async read(after, filter, limit) {
      const horizon = globalPosition(BigInt(events.length));
      const page: RecordedEvent[] = [];
      // The event at position 1 has index 0.
      for (let index = Number(after); index < events.length && page.length < limit; index++) {
        const event = events[index] as RecordedEvent; // below the length
        if (filter.some(({ family, types }) => family === event.family && types.includes(event.type))) page.push(event);
      }
      const last = page.at(-1);
      const upTo = page.length === limit && last ? last.position : laterPosition(after, horizon);
      return { after, upTo, events: page, horizon };
    },
    async wait(after, signal) {
      if (BigInt(events.length) > after || signal.aborted) return;
      const aborted = Promise.withResolvers<void>();
      const abort = () => aborted.resolve();
      signal.addEventListener('abort', abort, { once: true });
      await Promise.race([grown.next(), aborted.promise]);
      signal.removeEventListener('abort', abort);
    },
  };

  return {
    events,
    stream: (family, streamId) => [...(streams.get(streamName(family, streamId)) ?? [])],
    source,
    async append({ family, streamId, events: added, expectedVersion = 'any' }) {
      const valid = await Promise.all(added.map((event) => validated(family, event)));
      const name = streamName(family, streamId);
      const own = streams.get(name) ?? [];
      const version = own.length;
      if (!fits(expectedVersion, version))
        throw new ConcurrencyConflict({ family: family.name, streamId, expected: expectedVersion, actual: version });
      const recorded = valid.map(({ type, payload, payloadVersion, metadata = {}, id }, index): RecordedEvent => {
        const position = events.length + index + 1;
        const event: UnreadEvent = {
          id: id ?? `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
          family: family.name,
          streamId,
          streamPosition: version + index + 1,
          position: globalPosition(BigInt(position)),
          type,
          payload: undefined,
          payloadVersion: payloadVersion ?? newestVersion(family, type),
          metadata: loggedJson(metadata, `The metadata of ${family.name}'s '${type}'`) as EventMetadata, // an object, as given
          recordedAt: typeof now === 'function' ? now() : now,
        };
        readPayload(event, family, loggedJson(payload ?? null, `The payload of ${family.name}'s '${type}'`));
        return event;
      });
      for (const event of recorded) {
        events.push(event);
        own.push(event);
      }
      if (recorded.length > 0) streams.set(name, own);
      grown.fire();
      return recorded;
    },
  };
}

// A family's name contains no space.
const streamName = ({ name }: EventFamily, streamId: string) => `${name} ${streamId}`;

/** Checks a payload of the newest version as an append does. Older ones were checked when they were written. */
async function validated(family: EventFamily, event: GivenEvent): Promise<GivenEvent> {
  const isOther = event.payloadVersion !== undefined && event.payloadVersion !== newestVersion(family, event.type);
  return isOther && family.types.includes(event.type) ? event : validateEvent(family, event); // refuses unknown types
}

function fits(expected: ExpectedVersion, actual: number): expected is 'any' {
  if (expected === 'any') return true;
  if (expected === 'stream-exists') return actual > 0;
  return actual === (expected === 'no-stream' ? 0 : expected);
}
