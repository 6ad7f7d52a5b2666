import { beginning, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { laterToken, type PositionToken } from '../../events/position-token.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { type ChangeCursor, cursorText, type RowGeneration, tokenIn } from '../../projections/queries/change-cursor.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import type { ChangeFeedQuery, ChangeFeedUpdate, LagReason } from '../../schema/contract/change-feed.ts';
import { pageQuery } from '../../store/queries/row-queries.ts';
import { columnsLost } from './compatibility.ts';
import { type FeedChanges, FeedOutbox } from './feed-outbox.ts';
import type { FeedRequest, FeedWatcher } from './feed-watcher.ts';
import { windowQuery } from './lists.ts';
import { type LiveSubscription, projectionSwitched } from './live-subscription.ts';

export interface FeedSubscriptionOptions {
  readonly projection: Projection;
  readonly query: ChangeFeedQuery;
  readonly readSchema: string;
  readonly after: GlobalPosition | null;
  /** The most changed rows that wait for the consumer. Beyond that, they are discarded and read again when it is ready. */
  readonly maxWaiting: number;
  wake(): void;
  /** Ends the subscription. */
  fail(error: unknown): void;
}

// A subscriber without relevant changes still receives a position now and then. Otherwise the changes from its last position on may expire.
const progressMilliseconds = 60_000;

/**
 * Delivers the changes of a version's rows. A consumer that is slower than the changes receives only the latest of each row. One that is slower
 * by more than `maxWaiting` rows receives nothing until it pulls, and then the changes since its last message, in chunks.
 */
export function createFeedSubscription(options: FeedSubscriptionOptions): LiveSubscription<ChangeFeedUpdate> {
  const { query, maxWaiting } = options;
  const outbox = new FeedOutbox(query);
  let phase: 'head' | FeedRequest = { kind: 'begin', since: query.since, lagged: null };
  let rows: RowGeneration | undefined;
  /** The cursor from which the consumer resumes, after all that it has received. */
  let given: ChangeCursor | null = query.since;
  /** Why the consumer has to start over; null once it was told, or if its cursor is still to be checked. */
  let lost: LagReason | null = null;
  let floor = options.after ?? beginning;
  let sentAt = 0;
  /** True while nothing is read for the subscription, until the consumer pulls. */
  let stalled = false;
  const backoff = createBackoff();
  let leave = () => {};
  let wakeFollower = () => {};

  const watcherOf = (version: number): FeedWatcher => ({
    query,
    get atHead() {
      return phase === 'head';
    },
    get wants() {
      return phase !== 'head' && outbox.isEmpty && !stalled;
    },
    request(position) {
      if (phase === 'head' || !outbox.isEmpty || stalled) return null;
      return position < floor || backoff.isOn ? null : phase;
    },
    begin(lagged, kept, { at, upTo, part }) {
      rows = { version, generation: kept.generation };
      outbox.put({ reset: true, lagged, changes: part?.changes ?? [], at, complete: !part?.after });
      if (part?.after) phase = { kind: 'rows', after: part.after, from: part.from };
      else phase = part || at.position === upTo ? 'head' : { kind: 'changes', after: at.position };
      options.wake();
    },
    resume(kept) {
      rows = { version, generation: kept.generation };
    },
    receiveRows(part) {
      const { from, after } = part;
      outbox.put({ reset: false, lagged: null, changes: part.changes, at: from, complete: !after });
      // Changes made while the chunks were read come after the last chunk.
      phase = after ? { kind: 'rows', after, from } : { kind: 'changes', after: from.position };
      options.wake();
    },
    receiveChanges({ changes, at, more }) {
      phase = more ? { kind: 'changes', after: at.position } : 'head';
      const relevant = outbox.relevant(changes);
      if (!outbox.isEmpty) {
        if (outbox.merge(relevant, at) > maxWaiting) return stall();
      } else if (given && !more && relevant.length === 0 && !isProgressDue()) {
        given = cursorAt(laterToken(tokenIn(given), at), rows);
        return;
      } else {
        const reached = laterToken(at, { position: floor, anchor: null });
        outbox.put({ reset: false, lagged: null, changes: relevant, at: reached, complete: true });
      }
      options.wake();
    },
    fallBehind,
    historyChanged() {
      if (given !== null || sentAt > 0) lost = 'HISTORY_CHANGED';
      stalled = false;
      given = null;
      floor = beginning;
      fallBehind();
    },
    failed: backoff.failed,
    fail: options.fail,
  });

  const isProgressDue = () => sentAt === 0 || performance.now() - sentAt >= progressMilliseconds;

  function fallBehind(): void {
    outbox.clear();
    phase = { kind: 'begin', since: given, lagged: lost };
  }

  function stall(): void {
    fallBehind();
    stalled = true;
  }

  return {
    attach(follower) {
      checkQuery(options, follower.projection);
      fallBehind();
      const watcher = watcherOf(follower.projection.version);
      follower.feeds.add(watcher);
      leave = () => follower.feeds.remove(watcher);
      wakeFollower = () => follower.wake();
    },
    detach() {
      leave();
      // The next version delivers what the consumer has not pulled.
      fallBehind();
    },
    take() {
      const update = outbox.take();
      if (!update) {
        if (stalled) {
          stalled = false;
          wakeFollower();
        }
        return undefined;
      }
      const { reset, lagged, changes, at, complete } = update;
      const { position } = at;
      const cursor = complete ? cursorAt(at, rows) : null;
      given = cursor;
      if (reset) lost = null;
      floor = laterPosition(floor, position);
      sentAt = performance.now();
      backoff.end();
      if (phase !== 'head') wakeFollower();
      return messageOf({ position, cursor, reset, lagged, changes: [...changes.values()] }, changes);
    },
  };
}

function cursorAt({ position, anchor }: PositionToken, rows: RowGeneration | undefined): ChangeCursor {
  return { position, ...(anchor === null ? {} : { anchor }), rows: rows ?? null };
}

/** If the server refuses to read for one subscription (it takes too long), the retries must not block the others. */
function createBackoff() {
  let failures = 0;
  let until = 0;
  return {
    get isOn() {
      return performance.now() < until;
    },
    failed() {
      failures++;
      until = performance.now() + Math.min(100 * 2 ** failures, 30_000);
    },
    /** The next failure is a first one again. */
    end() {
      failures = 0;
    },
  };
}

/** @throws RefoldError see {@link LiveSubscription.attach} */
function checkQuery({ projection, query, readSchema }: FeedSubscriptionOptions, to: Projection): void {
  const { where, columns } = query;
  const asPage = windowQuery({ where, columns, orderBy: [], first: 1 });
  pageQuery(readSchema, projection, asPage);
  const looked = filterColumns(where);
  const lost = columnsLost(projection, to, [...columns, ...looked]);
  if (lost.length > 0) throw projectionSwitched(projection, to, lost);
  try {
    pageQuery(readSchema, to, asPage);
  } catch {
    throw projectionSwitched(projection, to, looked); // for example a filter by a value that the enum no longer has
  }
}

const messages = new WeakMap<FeedChanges, ChangeFeedUpdate>();

/** Returns the same message object for equal updates, so each response is created only once. */
function messageOf(message: ChangeFeedUpdate, changes: FeedChanges): ChangeFeedUpdate {
  const other = messages.get(changes);
  if (other && isSame(other, message)) return other;
  messages.set(changes, message);
  return message;
}

function isSame(a: ChangeFeedUpdate, b: ChangeFeedUpdate): boolean {
  const [cursor, other] = [a.cursor && cursorText(a.cursor), b.cursor && cursorText(b.cursor)];
  return a.position === b.position && cursor === other && a.reset === b.reset && a.lagged === b.lagged;
}
