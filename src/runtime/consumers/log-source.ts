import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition, laterPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/declaration/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { LogHead } from '../../store/log/horizon.ts';
import type { EventPage, EventSource } from './event-source.ts';
import { type History, historyChanged } from './history.ts';

/** Sleeps until there may be news of the log. */
export interface LogWaker {
  wait(): Promise<void>;
  /** There were news: the next looks come soon. */
  news(): void;
  /** Ends a wait at once. */
  wake(): void;
}

// What is new at the head is a few events, as a rule. More come faster by COPY, in pages of the reader's size.
const tailSize = 100;
// Beyond all positions.
const anywhere = globalPosition(2n ** 62n);

/** A source of events that can be told of news. */
export interface LogSource extends EventSource {
  /**
   * There may be more up to a position, which was committed; or anywhere, where it is not known. Whoever waits looks at once, but not for what has
   * been read: the same news come more than once.
   */
  appended(position?: GlobalPosition): void;
}

/**
 * The log as a source of events. How far it is complete is looked up once for all readings of the process, and again only when one has
 * reached that: far behind, one look serves many pages. At the head, a look brings what is new along.
 *
 * What is known lives no longer than the history that it was read from: each look, and each page, compares the anchor of what is known.
 */
export function createLogSource(
  log: Pick<EventLog, 'readHead' | 'readAll' | 'readTail'>,
  waker: LogWaker,
  history: History,
): LogSource {
  let known: GlobalPosition | undefined;
  // Outlives what is known: after a restart of the server it tells whether history is the same.
  let anchored: { readonly position: GlobalPosition; readonly anchor: string } | undefined;
  let looking: Promise<void> | undefined;
  let waiting: Promise<void> | undefined;
  // News past what is known, of after the last look began.
  let told: GlobalPosition | undefined;
  // The last look had more behind it than it could bring along.
  let crowded = false;

  history.onChange((change) => {
    known = undefined;
    told = undefined;
    crowded = false;
    if (change === 'cut') anchored = undefined;
    if (waiting !== undefined) waker.wake();
  });

  /** Looks, and gives a page where the look has brought one; where another reading looks, its look will do. */
  async function look(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage | null> {
    if (looking !== undefined) {
      const isOver = await looking.then(
        () => true,
        () => false, // for what the other asked, perhaps
      );
      return isOver ? null : look(after, filter, limit);
    }
    const before = anchored;
    const asked = before?.position ?? null;
    const along =
      known === undefined || crowded
        ? null
        : log.readTail({ after, filter, limit: Math.min(limit, tailSize), known: asked });
    told = undefined;
    looking = (along ?? log.readHead(asked))
      .then((head) => learn(head, before))
      .finally(() => {
        looking = undefined;
      });
    await looking;
    const tail = await along;
    if (!tail || tail.upTo <= after) return null;
    const { events, upTo, horizon } = tail;
    crowded = upTo < horizon;
    return { after, upTo, events, horizon };
  }

  function learn({ horizon, anchor, knownAnchor, serverStart }: LogHead, before: typeof anchored): void {
    history.note(serverStart);
    // Where the transaction keeps one snapshot, there are no anchors.
    if (before !== undefined && before === anchored && anchor !== null && knownAnchor !== before.anchor) {
      history.cut(before.position);
      throw historyChanged(before.position);
    }
    const risen = known !== undefined && horizon > known;
    known = laterPosition(known ?? horizon, horizon);
    if (known === horizon) anchored = anchor === null ? undefined : { position: horizon, anchor };
    if (told !== undefined && told <= known) told = undefined;
    // Another reading may have slept through the news; and what was told meanwhile, this look was too early for.
    if (waiting !== undefined && (risen || told !== undefined)) waker.wake();
  }

  function appended(position: GlobalPosition = anywhere): void {
    if (known !== undefined && position <= known) return;
    told = laterPosition(told ?? position, position);
    // Who is about to wait is not let: a wait that is woken before it begins would end twice.
    if (waiting !== undefined && looking === undefined) waker.wake();
  }

  /** A page up to the horizon that is known, which was looked up in an earlier statement: this one's snapshot holds everything below it. */
  async function readPage(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage> {
    const horizon = laterPosition(known ?? after, after);
    if (after >= horizon) return { after, upTo: after, events: [], horizon: after };
    const { era } = history;
    const anchor = anchored?.position === horizon ? anchored.anchor : null;
    try {
      const { events, upTo } = await log.readAll({ after, upTo: horizon, anchor, era, filter, limit });
      return { after, upTo, events, horizon };
    } catch (error) {
      if (error instanceof RefoldError && error.code === 'HISTORY_CHANGED' && history.era === era) history.cut(horizon);
      throw error;
    }
  }

  async function readNext(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage> {
    const atHead = known === undefined || after >= known;
    const along = atHead ? await look(after, filter, limit) : null;
    const page = along ?? (await readPage(after, filter, limit));
    if (atHead && !along) crowded = page.events.length > tailSize;
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
      // Found by another reading meanwhile.
      if (history.cuts !== cuts) throw historyChanged(after);
      if (page.events.length > 0 || (filter.length === 0 && page.upTo > after)) waker.news();
      return page;
    },
    async wait(after, signal) {
      if (signal.aborted || told !== undefined || known === undefined || after < known) return;
      // One wait for all readings: each wakes with the others.
      waiting ??= waker.wait().finally(() => {
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

/** What a notification of an append tells: the last position. Whoever inserts events without `refold.append` may tell anything. */
export function positionTold(payload: string | undefined): GlobalPosition | undefined {
  return payload !== undefined && /^\d{1,15}$/.test(payload) ? globalPosition(BigInt(payload)) : undefined;
}
