import { beginning, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { laterToken, type PositionToken } from '../../events/position-token.ts';
import { keyText, type Projection } from '../../projections/projection/projection.ts';
import { type ChangeCursor, cursorText, type RowGeneration, tokenIn } from '../../projections/queries/change-cursor.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import type { ChangeFeedQuery, ChangeFeedUpdate, LagReason, RowChange } from '../../schema/contract/change-feed.ts';
import { pageQuery } from '../../store/queries/row-queries.ts';
import { columnsLost } from './compatibility.ts';
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
}

/** An update that the consumer has not pulled yet. */
interface Waiting {
  reset: boolean;
  lagged: LagReason | null;
  changes: Changes;
  at: PositionToken;
  /** Whether the consumer may resume from this position. */
  complete: boolean;
}

/** Changes as they were read, one array shared by all equal subscriptions; or the latest change of each row, by the text of its key. */
type Changes = readonly RowChange[] | Map<string, RowChange>;

// The keys that a subscriber with a filter holds are tracked up to this many rows. Beyond it, the subscriber receives every change that may concern it.
const maxHeld = 1000;
// A subscriber without relevant changes still receives a position now and then. Otherwise the changes from its last position on may expire.
const progressMilliseconds = 60_000;

/**
 * Delivers the changes of a version's rows. A consumer that is slower than the changes receives only the latest of each row. One that is slower
 * by more than `maxWaiting` rows receives nothing until it pulls, and then the changes since its last message, in chunks.
 */
export function createFeedSubscription(options: FeedSubscriptionOptions): LiveSubscription<ChangeFeedUpdate> {
  const { projection, query, maxWaiting } = options;
  let phase: 'head' | FeedRequest = { kind: 'begin', since: query.since, lagged: null };
  let rows: RowGeneration | undefined;
  let waiting: Waiting | undefined;
  /** The cursor from which the consumer resumes, after all that it has received. */
  let given: ChangeCursor | null = query.since;
  let floor = options.after ?? beginning;
  let sentAt = 0;
  /** True while nothing is read for the subscription, until the consumer pulls. */
  let stalled = false;
  let failures = 0;
  let notBefore = 0;
  /** The keys that the consumer may hold; undefined if unknown. */
  let held: Set<string> | undefined;
  let leave = () => {};
  let wakeFollower = () => {};

  const watcherOf = (version: number): FeedWatcher => ({
    query,
    get atHead() {
      return phase === 'head';
    },
    get wants() {
      return phase !== 'head' && !waiting && !stalled;
    },
    request(position) {
      if (phase === 'head' || waiting || stalled || position < floor || performance.now() < notBefore) return null;
      return phase;
    },
    begin(lagged, kept, at, part) {
      rows = { version, generation: kept.generation };
      waiting = { reset: true, lagged, changes: part?.changes ?? [], at, complete: !part?.after };
      phase = part?.after ? { kind: 'rows', after: part.after, from: part.from } : 'head';
      options.wake();
    },
    resume(kept) {
      rows = { version, generation: kept.generation };
    },
    receiveRows(part) {
      const { from, after } = part;
      waiting = { reset: false, lagged: null, changes: part.changes, at: from, complete: !after };
      // Changes made while the chunks were read come after the last chunk.
      phase = after ? { kind: 'rows', after, from } : { kind: 'changes', after: from.position };
      options.wake();
    },
    receiveChanges({ changes, at, more }) {
      phase = more ? { kind: 'changes', after: at.position } : 'head';
      const before = waiting;
      const relevant = held ? those(changes, changes.map(concerns)) : changes;
      const quiet = relevant.length === 0 && sentAt > 0 && performance.now() - sentAt < progressMilliseconds;
      if (!before && quiet && given && !more) {
        given = cursorAt(laterToken(tokenIn(given), at));
        return;
      }
      if (before) {
        merge(before, relevant);
        before.at = laterToken(before.at, at);
        if (before.changes.size > maxWaiting) return stall();
      } else {
        const reached = laterToken(at, { position: floor, anchor: null });
        waiting = { reset: false, lagged: null, changes: relevant, at: reached, complete: true };
      }
      options.wake();
    },
    fallBehind,
    historyChanged() {
      const knew = given !== null || sentAt > 0;
      waiting = undefined;
      stalled = false;
      given = null;
      floor = beginning;
      phase = { kind: 'begin', since: null, lagged: knew ? 'HISTORY_CHANGED' : null };
    },
    failed() {
      // If the server refuses to read for one subscription (it takes too long), the retries must not block the others.
      failures++;
      notBefore = performance.now() + Math.min(100 * 2 ** failures, 30_000);
    },
  });

  function merge(
    into: Waiting,
    changes: readonly RowChange[],
  ): asserts into is Waiting & { changes: Map<string, RowChange> } {
    const merged = byKey(into.changes);
    into.changes = merged;
    for (const change of changes) {
      const text = keyText(change.key);
      merged.delete(text); // reinsert at the end, because positions rise
      // A consumer need not receive the deletion of a row that it has not received.
      if (change.operation === 'UPSERT' || !into.reset || !query.snapshot) merged.set(text, change);
    }
  }

  function concerns({ operation, key }: RowChange): boolean {
    if (operation === 'UPSERT' || !held || waiting?.reset) return true;
    const text = keyText(key);
    if (held.has(text)) return true;
    if (!waiting) return false;
    waiting.changes = byKey(waiting.changes);
    return waiting.changes.has(text);
  }

  function fallBehind(): void {
    waiting = undefined;
    phase = { kind: 'begin', since: given, lagged: null };
  }

  function stall(): void {
    fallBehind();
    stalled = true;
  }

  function cursorAt({ position, anchor }: PositionToken): ChangeCursor {
    return { position, ...(anchor === null ? {} : { anchor }), rows: rows ?? null };
  }

  function hold(changes: Changes): void {
    if (!held) return;
    for (const { operation, key } of changes.values()) {
      if (operation === 'UPSERT') held.add(keyText(key));
      else held.delete(keyText(key));
    }
    if (held.size > maxHeld) held = undefined;
  }

  return {
    attach(follower) {
      checkQuery(follower.projection);
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
      if (!waiting) {
        if (stalled) {
          stalled = false;
          wakeFollower();
        }
        return undefined;
      }
      const { reset, lagged, changes, at, complete } = waiting;
      const { position } = at;
      waiting = undefined;
      const cursor = complete ? cursorAt(at) : null;
      given = cursor;
      floor = laterPosition(floor, position);
      sentAt = performance.now();
      failures = 0;
      if (reset) held = query.where && query.snapshot ? new Set() : undefined;
      hold(changes);
      if (phase !== 'head') wakeFollower();
      return messageOf({ position, cursor, reset, lagged, changes: [...changes.values()] }, changes);
    },
  };

  function checkQuery(to: Projection): void {
    const { where, columns } = query;
    const asPage = windowQuery({ where, columns, orderBy: [], first: 1 });
    pageQuery(options.readSchema, projection, asPage);
    const looked = filterColumns(where);
    const lost = columnsLost(projection, to, [...columns, ...looked]);
    if (lost.length > 0) throw projectionSwitched(projection, to, lost);
    try {
      pageQuery(options.readSchema, to, asPage);
    } catch {
      throw projectionSwitched(projection, to, looked); // for example a filter by a value that the enum no longer has
    }
  }
}

function byKey(changes: Changes): Map<string, RowChange> {
  return changes instanceof Map ? changes : new Map(changes.map((change) => [keyText(change.key), change]));
}

const parts = new WeakMap<readonly RowChange[], Map<string, readonly RowChange[]>>();

/** Selects some of the changes. Equal selections return the same object. */
function those(changes: readonly RowChange[], wanted: readonly boolean[]): readonly RowChange[] {
  if (!wanted.includes(false)) return changes;
  const known = parts.get(changes) ?? new Map<string, readonly RowChange[]>();
  parts.set(changes, known);
  const id = wanted.map(Number).join('');
  const part = known.get(id) ?? changes.filter((_, index) => wanted[index]);
  known.set(id, part);
  return part;
}

const messages = new WeakMap<Changes, ChangeFeedUpdate>();

/** Returns the same message object for equal updates, so each response is created only once. */
function messageOf(message: ChangeFeedUpdate, changes: Changes): ChangeFeedUpdate {
  const other = messages.get(changes);
  if (other && isSame(other, message)) return other;
  messages.set(changes, message);
  return message;
}

function isSame(a: ChangeFeedUpdate, b: ChangeFeedUpdate): boolean {
  const [cursor, other] = [a.cursor && cursorText(a.cursor), b.cursor && cursorText(b.cursor)];
  return a.position === b.position && cursor === other && a.reset === b.reset && a.lagged === b.lagged;
}
