import { ConcurrencyConflict } from '../errors.ts';
import type { ExpectedVersion, NewEvent, RecordedEvent } from '../events/event.ts';
import { type EventFamily, payloadVersion, validateEvent } from '../events/event-family.ts';
import { globalPosition } from '../events/global-position.ts';

export interface InMemoryAppend {
  readonly family: EventFamily;
  readonly streamId: string;
  readonly events: readonly NewEvent[];
  /** @default 'any' */
  readonly expectedVersion?: ExpectedVersion;
}

/** A log without a database: the same checks of payloads and versions, the same places in stream and log. */
export interface InMemoryLog {
  /** @throws InvalidInput, ConcurrencyConflict; nothing is written then */
  append(append: InMemoryAppend): Promise<readonly RecordedEvent[]>;
  /** All events, in the order of the log. */
  readonly events: readonly RecordedEvent[];
  stream(family: EventFamily, streamId: string): readonly RecordedEvent[];
}

/** @param options.now when every event is recorded, ISO 8601 UTC */
export function createInMemoryLog(options: { readonly now?: string } = {}): InMemoryLog {
  const { now = '2026-01-01T00:00:00.000Z' } = options;
  const events: RecordedEvent[] = [];
  const stream = (family: EventFamily, streamId: string) =>
    events.filter((event) => event.family === family.name && event.streamId === streamId);

  return {
    events,
    stream,
    async append({ family, streamId, events: added, expectedVersion = 'any' }) {
      const valid = await Promise.all(added.map((event) => validateEvent(family, event)));
      const version = stream(family, streamId).length;
      if (!fits(expectedVersion, version))
        throw new ConcurrencyConflict({ family: family.name, streamId, expected: expectedVersion, actual: version });
      const recorded = valid.map(({ type, payload, metadata = {}, id }, index): RecordedEvent => {
        const position = events.length + index + 1;
        return {
          id: id ?? `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
          family: family.name,
          streamId,
          streamPosition: version + index + 1,
          position: globalPosition(BigInt(position)),
          type,
          payload: JSON.parse(JSON.stringify(payload)),
          payloadVersion: payloadVersion(family, type),
          metadata,
          recordedAt: now,
        };
      });
      events.push(...recorded);
      return recorded;
    },
  };
}

function fits(expected: ExpectedVersion, actual: number): expected is 'any' {
  if (expected === 'any') return true;
  if (expected === 'stream-exists') return actual > 0;
  return actual === (expected === 'no-stream' ? 0 : expected);
}
