import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { type StoredEvent, searchEvents } from '../../store/browsing/search-events.ts';
import type { EventSearch } from '../../store/browsing/search-windows.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { LogHead } from '../../store/log/horizon.ts';
import type { Queryable } from '../../store/statements/statement.ts';

export interface EventTailOptions {
  readonly db: Queryable;
  readonly log: Pick<EventLog, 'families' | 'readHead'>;
  readonly search: Omit<EventSearch, 'after' | 'upTo' | 'order' | 'limit'>;
  /** Events after this head are new. */
  readonly from: Pick<LogHead, 'horizon' | 'anchor'>;
}

/**
 * Follows the log as an operator does: each call returns the matching events since the last one, in the order of the log. After a failure, the next
 * call begins after the last event that was returned.
 *
 * @throws RefoldError `HISTORY_CHANGED` if the log no longer holds the events that were returned
 */
export type EventTail = () => AsyncGenerator<StoredEvent>;

/** Creates a tail that reads nothing until its first call. */
export function createEventTail({ db, log, search, from }: EventTailOptions): EventTail {
  let known: { readonly position: GlobalPosition; readonly anchor: string | null } = {
    position: from.horizon,
    anchor: from.anchor,
  };
  let passed = from.horizon;

  return async function* newEvents() {
    const { horizon, anchor, knownAnchor } = await log.readHead(known.position);
    if (known.anchor !== null && knownAnchor !== known.anchor)
      throw new RefoldError(
        'HISTORY_CHANGED',
        `The log has changed at or before position ${known.position}: it no longer holds the events that were shown. Start again.`,
      );
    // A later horizon may be lower than an earlier one.
    if (horizon <= known.position) return;
    const range = { after: passed, upTo: horizon, order: 'oldestFirst', limit: Number.MAX_SAFE_INTEGER } as const;
    for await (const event of searchEvents(db, log.families, { ...search, ...range })) {
      passed = event.position;
      yield event;
    }
    known = { position: horizon, anchor };
    passed = horizon;
  };
}
