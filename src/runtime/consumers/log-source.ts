import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition, laterPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { LogHead } from '../../store/log/horizon.ts';
import type { EventPage, EventSource } from './event-source.ts';
import { type History, historyChanged } from './history.ts';

/** Sleeps until there may be new events in the log. */
export interface LogPollTimer {
  wait(): Promise<void>;
  /** Reports that there were new events: the next polls come soon. */
  foundWork(): void;
  /** Ends a wait at once. */
  wake(): void;
}

// New events at the head are usually few. More of them arrive faster by COPY, in pages of the reader's size.
const tailSize = 100;
// Larger than any position: the position of the new events is unknown.
const positionUnknown = globalPosition(2n ** 62n);

/** A source of events that accepts notifications of new events. */
export interface LogSource extends EventSource {
  /**
   * Reports that there may be events up to a committed position, or at an unknown position if none is given. Waiting readings poll at once,
   * unless they have already read that far: the same notification may arrive more than once.
   */
  appended(position?: GlobalPosition): void;
}

/**
 * The log as a source of events. All readings of a process share one horizon, up to which the log is complete. It is polled again only when a
 * reading has reached it: far behind, one poll serves many pages. At the head, a poll also returns the new events.
 *
 * The known horizon is valid only for the history it was read from. Each poll and each page therefore compares its anchor.
 */
export function createLogSource(
  log: Pick<EventLog, 'readHead' | 'readAll' | 'readTail'>,
  pollTimer: LogPollTimer,
  history: History,
): LogSource {
  let known: GlobalPosition | undefined;
  // Kept when `known` is dropped: after a restart of the server it shows whether history is the same.
  let anchored: { readonly position: GlobalPosition; readonly anchor: string } | undefined;
  let looking: Promise<void> | undefined;
  let waiting: Promise<void> | undefined;
  // A notified position past `known`, received after the last poll began.
  let pendingPosition: GlobalPosition | undefined;
  // The last poll found more events than it could return.
  let hasBacklog = false;

  history.onChange((change) => {
    known = undefined;
    pendingPosition = undefined;
    hasBacklog = false;
    if (change === 'cut') anchored = undefined;
    if (waiting !== undefined) pollTimer.wake();
  });

  /** Polls the head, and returns a page if the poll returned one. If another reading polls already, waits for that poll instead. */
  async function look(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage | null> {
    if (looking !== undefined) {
      const isOver = await looking.then(
        () => true,
        () => false, // the failure may be due to the other reading's request
      );
      return isOver ? null : look(after, filter, limit);
    }
    const before = anchored;
    const asked = before?.position ?? null;
    const along =
      known === undefined || hasBacklog
        ? null
        : log.readTail({ after, filter, limit: Math.min(limit, tailSize), known: asked });
    pendingPosition = undefined;
    looking = (along ?? log.readHead(asked))
      .then((head) => learn(head, before))
      .finally(() => {
        looking = undefined;
      });
    await looking;
    const tail = await along;
    if (!tail || tail.upTo <= after) return null;
    const { events, upTo, horizon, bytes } = tail;
    hasBacklog = upTo < horizon;
    return { after, upTo, events, horizon, bytes };
  }

  function learn({ horizon, anchor, knownAnchor, serverStart }: LogHead, before: typeof anchored): void {
    history.note(serverStart);
    // A transaction with one fixed snapshot returns no anchors.
    if (before !== undefined && before === anchored && anchor !== null && knownAnchor !== before.anchor) {
      history.cut(before.position);
      throw historyChanged(before.position);
    }
    const risen = known !== undefined && horizon > known;
    known = laterPosition(known ?? horizon, horizon);
    if (known === horizon) anchored = anchor === null ? undefined : { position: horizon, anchor };
    if (pendingPosition !== undefined && pendingPosition <= known) pendingPosition = undefined;
    // Another reading may wait although there are new events, and this poll was too early for a notification received meanwhile.
    if (waiting !== undefined && (risen || pendingPosition !== undefined)) pollTimer.wake();
  }

  function appended(position: GlobalPosition = positionUnknown): void {
    if (known !== undefined && position <= known) return;
    pendingPosition = laterPosition(pendingPosition ?? position, position);
    // Do not wake a reader that is about to wait: its next wait would end early.
    if (waiting !== undefined && looking === undefined) pollTimer.wake();
  }

  /** Reads a page up to the known horizon. An earlier statement read that horizon, so this snapshot holds everything below it. */
  async function readPage(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage> {
    const horizon = laterPosition(known ?? after, after);
    if (after >= horizon) return { after, upTo: after, events: [], horizon: after };
    const { era } = history;
    const anchor = anchored?.position === horizon ? anchored.anchor : null;
    try {
      const { events, upTo, bytes } = await log.readAll({ after, upTo: horizon, anchor, era, filter, limit });
      return { after, upTo, events, horizon, bytes };
    } catch (error) {
      if (error instanceof RefoldError && error.code === 'HISTORY_CHANGED' && history.era === era) history.cut(horizon);
      throw error;
    }
  }

  async function readNext(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage> {
    const atHead = known === undefined || after >= known;
    const along = atHead ? await look(after, filter, limit) : null;
    const page = along ?? (await readPage(after, filter, limit));
    if (atHead && !along) hasBacklog = page.events.length > tailSize;
    return page;
  }

  return {
    appended,
    get cuts() {
      return history.cuts;
    },
    async read(after, filter, limit) {
      const { cuts } = history;
      const page = await readNext(after, filter, limit);
      // Another reading found the cut meanwhile.
      if (history.cuts !== cuts) throw historyChanged(after);
      if (page.events.length > 0 || (filter.length === 0 && page.upTo > after)) pollTimer.foundWork();
      return page;
    },
    async wait(after, signal) {
      if (signal.aborted || pendingPosition !== undefined || known === undefined || after < known) return;
      // One shared wait for all readings: all of them wake together.
      waiting ??= pollTimer.wait().finally(() => {
        waiting = undefined;
      });
      const woken = waiting;
      await new Promise<void>((resolve) => {
        const end = () => {
          signal.removeEventListener('abort', end);
          resolve();
        };
        signal.addEventListener('abort', end);
        void woken.then(end, end);
      });
    },
  };
}

/** Parses the position in a notification of an append. Code that inserts events without `refold.append` may send any payload. */
export function parseNotifiedPosition(payload: string | undefined): GlobalPosition | undefined {
  return payload !== undefined && /^\d{1,15}$/.test(payload) ? globalPosition(BigInt(payload)) : undefined;
}
