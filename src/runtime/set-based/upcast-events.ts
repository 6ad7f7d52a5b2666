import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';

const pageSize = 5_000;

/** Returns the events in `(after, upTo]` of types with upcasters, in their newest shape. SQL cannot read these from the log itself. */
export async function upcastEvents(
  log: EventLog,
  filter: readonly EventFilter[],
  after: GlobalPosition,
  upTo: GlobalPosition,
): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (let from = after; filter.length > 0 && from < upTo; ) {
    const page = await log.readAll({ after: from, upTo, filter, limit: pageSize });
    events.push(...page.events);
    from = page.upTo;
  }
  return events;
}
