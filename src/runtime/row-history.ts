import { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import { keyText, type Projection, type RowKey } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import type { RowVersion } from '../schema/operation-context.ts';
import type { EventLog } from '../store/event-log.ts';

/** Every state that a row has had, with the event that led to it. */
export type RowHistory = (projection: Projection, key: RowKey) => Promise<readonly RowVersion[]>;

// Held in memory, each with its row. Streams are far shorter; what is longer is no history that somebody looks at.
const mostEvents = 20_000;

/** Folds a row's own events anew. @throws RefoldError `QUERY_TOO_COMPLEX` where there are more than 20,000 */
export function createRowHistory(log: EventLog): RowHistory {
  return async (projection, key) => {
    const { onError } = projection;
    const text = keyText(key);
    const versions: RowVersion[] = [];
    let row: Row | null = null;
    for (const event of await eventsOf(log, projection, key)) {
      const before: Row | null = row;
      try {
        if (!projection.keysOf(event).some((touched) => keyText(touched) === text)) continue;
        row = projection.apply(row, event, key);
      } catch (error) {
        if (onError.policy === 'skip') continue;
        if (onError.policy === 'dead-letter') break; // the table has the row as it was before, too
        throw error;
      }
      versions.push({ event, before, row });
    }
    return versions;
  };
}

/** In the order of the log; a projection may read several families with streams of the same id. */
async function eventsOf(log: EventLog, projection: Projection, key: RowKey): Promise<readonly RecordedEvent[]> {
  const streamId = projection.history?.(key);
  if (streamId === undefined) throw new TypeError(`${projection.id} declares no history`); // such fields are not made
  const events: RecordedEvent[] = [];
  for (const { family: name, types } of projection.filter) {
    const family = projection.families.find((declared) => declared.name === name);
    if (!family) continue;
    for await (const event of log.readStream(family, streamId)) {
      if (!types.includes(event.type)) continue;
      events.push(event);
      if (events.length > mostEvents)
        throw new RefoldError(
          'QUERY_TOO_COMPLEX',
          `The row ${keyText(key)} of ${projection.id} has more than ${mostEvents} events.`,
        );
    }
  }
  return projection.filter.length === 1 ? events : events.sort((a, b) => (a.position < b.position ? -1 : 1));
}
