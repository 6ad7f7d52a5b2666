import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';

// More than the positions of any batch: only bytes end one.
const pageSize = 20_000;

/** The events of a batch that SQL cannot read from the log itself, in their newest shape. */
export interface UpcastEvents {
  readonly after: GlobalPosition;
  /** The batch ends here, earlier than asked for if its events fill a page. */
  readonly upTo: GlobalPosition;
  readonly events: readonly RecordedEvent[];
}

/** Reads a page of the events in `(after, upTo]` of types with upcasters. `known`: a page that may already hold them. */
export async function upcastEvents(
  log: EventLog,
  filter: readonly EventFilter[],
  after: GlobalPosition,
  upTo: GlobalPosition,
  known?: UpcastEvents,
): Promise<UpcastEvents> {
  if (filter.length === 0) return { after, upTo, events: [] };
  if (known && known.after <= after && upTo <= known.upTo)
    return { after, upTo, events: known.events.filter(({ position }) => position > after && position <= upTo) };
  const page = await log.readAll({ after, upTo, filter, limit: pageSize });
  return { after, upTo: page.upTo, events: page.events };
}
