import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { type EventSearch, type StoredEvent, searchEvents } from '../../store/browsing/search-events.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { LogHead } from '../../store/log/horizon.ts';
import type { Queryable } from '../../store/statements/statement.ts';

export interface EventTailOptions {
  readonly db: Queryable;
  readonly log: Pick<EventLog, 'families' | 'readHead'>;
  readonly search: Omit<EventSearch, 'after' | 'upTo' | 'order' | 'limit'>;
  /** Events after this head are new. */
  readonly from: Pick<LogHead, 'horizon' | 'anchor'>;
  readonly onEvent: (event: StoredEvent) => void;
}

/** Follows the log as an operator does: each poll passes on the matching events since the last one, in the order of the log. */
export interface EventTail {
  /**
   * Stops between two events if the signal aborts.
   *
   * @throws RefoldError `HISTORY_CHANGED` if the log no longer holds the events that were passed on
   */
  poll(signal?: AbortSignal): Promise<'found' | 'idle'>;
}

/** Creates a tail that reads nothing until its first poll. A poll that fails is repeated from the last event that was passed on. */
export function createEventTail({ db, log, search, from, onEvent }: EventTailOptions): EventTail {
  let known: { readonly position: GlobalPosition; readonly anchor: string | null } = {
    position: from.horizon,
    anchor: from.anchor,
  };
  let passed = from.horizon;

  return {
    async poll(signal) {
      const { horizon, anchor, knownAnchor } = await log.readHead(known.position);
      if (known.anchor !== null && knownAnchor !== known.anchor)
        throw new RefoldError(
          'HISTORY_CHANGED',
          `The log has changed at or before position ${known.position}: it no longer holds the events that were shown. Start again.`,
        );
      // A later horizon may be lower than an earlier one.
      if (horizon <= known.position) return 'idle';
      const page = {
        ...search,
        after: passed,
        upTo: horizon,
        order: 'oldest-first',
        limit: Number.MAX_SAFE_INTEGER,
      } as const;
      for await (const event of searchEvents(db, log.families, page)) {
        if (signal?.aborted) return 'found';
        onEvent(event);
        passed = event.position;
      }
      const before = known.position;
      known = { position: horizon, anchor };
      passed = horizon;
      return horizon > before ? 'found' : 'idle';
    },
  };
}
