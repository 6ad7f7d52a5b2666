import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { EventPace, type OnSlowEvent } from '../../events/event-pace.ts';
import { globalPosition } from '../../events/global-position.ts';
import { readPayload, type UnreadEvent } from '../../events/read-payload.ts';
import type { TableRow } from '../statements/statement.ts';
import { bytesSoFar, isFull, storedSize, withinBytes } from '../statements/within-bytes.ts';

/** A row of refold.events as the driver returns it. */
export type EventRow = TableRow<'refold.events'>;

/** The columns of {@link EventRow}. */
export const eventColumns = `position, stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata`;

/** The first of these ordered events that fit into a page: see {@link withinBytes}. */
export function withinPage(events: string, bytes?: number): string {
  return withinBytes(events, `pg_column_size(metadata) + ${storedSize('payload')}`, bytes);
}

/** A row of {@link withinPage}. */
export type SizedRow = EventRow & { readonly bytes: bigint | null };

/** Whether a page may have ended with this row because of its size. */
export function isCut({ bytes }: Pick<SizedRow, 'bytes'>): boolean {
  return isFull(bytes);
}

/** The columns of {@link SizedRow}. */
export const sizedColumns = `${eventColumns}, ${bytesSoFar} as bytes`;

/** Converts a row to an event with its declared names, and with its payload in the newest version. */
export function recordedEvent(family: EventFamily, row: EventRow): RecordedEvent {
  const event: UnreadEvent = {
    id: row.id,
    family: family.name,
    streamId: row.stream_id,
    streamPosition: Number(row.stream_position),
    position: globalPosition(row.position),
    type: family.declaredTypes[row.type] ?? row.type,
    payload: undefined,
    payloadVersion: row.payload_version,
    metadata: row.metadata,
    recordedAt: row.recorded_at,
  };
  readPayload(event, family, row.payload);
  return event;
}

/** Converts rows to events. The event loop has turns meanwhile: upcasters are code of the application. */
export async function recordedEvents(
  rows: readonly EventRow[],
  familyOf: (row: EventRow) => EventFamily,
  onSlowEvent?: OnSlowEvent,
): Promise<RecordedEvent[]> {
  const pace = new EventPace(onSlowEvent);
  pace.start();
  const events: RecordedEvent[] = [];
  for (const row of rows) {
    const event = recordedEvent(familyOf(row), row);
    events.push(event);
    if (pace.after(event)) await pace.turn();
  }
  return events;
}
