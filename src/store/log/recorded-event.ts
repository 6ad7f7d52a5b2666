import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { globalPosition } from '../../events/global-position.ts';
import { readPayload, type UnreadEvent } from '../../events/read-payload.ts';
import type { TableRow } from '../statements/statement.ts';

/** A row of refold.events as the driver returns it. */
export type EventRow = TableRow<'refold.events'>;

/** The columns of {@link EventRow}. */
export const eventColumns = `position, stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata`;

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
