import type { NewEvent, RecordedEvent } from '../../src/events/event.ts';
import type { EventFamily } from '../../src/events/event-family.ts';
import { validateEvent } from '../../src/events/event-family.ts';
import { globalPosition } from '../../src/events/global-position.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { fold, foldSteps } from '../../src/projections/fold/fold.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';

/** Adds to events what the log would add: ids, stream positions and log positions. Validates them as an append does. */
export function createRecorder() {
  const versions = new Map<string, number>();
  let position = 0n;
  return async ({ family, streamId, events }: Append): Promise<RecordedEvent[]> => {
    const stream = `${family.name}/${streamId}`;
    const recorded: RecordedEvent[] = [];
    for (const event of events) {
      const { type, payload, metadata = {} } = await validateEvent(family, event);
      const streamPosition = (versions.get(stream) ?? 0) + 1;
      versions.set(stream, streamPosition);
      position++;
      recorded.push({
        id: event.id ?? `00000000-0000-4000-8000-${position.toString().padStart(12, '0')}`,
        family: family.name,
        streamId,
        streamPosition,
        position: globalPosition(position),
        type,
        payload: JSON.parse(JSON.stringify(payload)),
        payloadVersion: 1,
        metadata,
        recordedAt: '2026-01-31T12:00:00.000Z',
      });
    }
    return recorded;
  };
}

interface Append {
  readonly family: EventFamily;
  readonly streamId: string;
  readonly events: readonly NewEvent[];
}

/** The rows of a read table by the text of their key, in memory. */
export class ReadTableInMemory {
  readonly rows = new Map<string, Row>();
  readonly #projection: Projection;

  constructor(projection: Projection) {
    this.#projection = projection;
  }

  /** Folds one batch, as the runtime does, rows and events frozen. */
  fold(events: readonly RecordedEvent[]): void {
    const { filter } = this.#projection;
    const wanted = events.filter(({ family, type }) =>
      filter.some((entry) => entry.family === family && entry.types.includes(type)),
    );
    const memory = {
      get: (text: string) => this.rows.get(text) ?? null,
      set: (text: string, _key: unknown, row: Row | null) => {
        if (row) this.rows.set(text, row);
        else this.rows.delete(text);
      },
    };
    fold(this.#projection, foldSteps(this.#projection, wanted), memory, { freeze: true });
  }

  /** The rows as JSON shows them: decimals as text. */
  plain(): unknown[] {
    return [...this.rows.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, row]) => JSON.parse(JSON.stringify(row)));
  }
}
