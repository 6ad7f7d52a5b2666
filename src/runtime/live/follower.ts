import type { PollingOptions } from '../../config/runtime-options.ts';
import { beginning, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import { readHorizon } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { type RecentBatch, type RecentChanges, readChanges, type ToAnchor } from '../../store/queries/live-queries.ts';
import { roundTrip } from '../../store/statements/round-trip.ts';
import { causesOf, isTracing, tracedEffect } from '../../tracing.ts';
import type { History } from '../consumers/history.ts';
import type { Positions } from '../reads/positions.ts';
import { createPoller, type PollResult } from '../scheduling/poller.ts';
import { type FeedLimits, feedLimits } from './feed-reads.ts';
import { createLiveFeeds, type LiveFeeds } from './feeds.ts';
import { createLiveLists, type LiveLists } from './lists.ts';
import { createLiveRows, type LiveRows, type RowsAhead } from './rows.ts';

export interface FollowerOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly positions: Pick<Positions, 'onCheckpoint'>;
  /** The polling interval without notifications. Milliseconds. */
  readonly polling: Required<Pick<PollingOptions, 'min' | 'max' | 'step'>>;
  /** Changes up to this age are certainly still stored. Milliseconds. */
  readonly changesKept: number;
  readonly feedLimits?: FeedLimits | undefined;
  /** Receives what a poll finds out about the history. @default none */
  readonly history?: History | undefined;
  onError(error: unknown): void;
}

/** Follows one version for all subscriptions to its rows, lists and changes. */
export interface Follower {
  readonly projection: Projection;
  readonly rows: Pick<LiveRows, 'add' | 'remove' | 'size'>;
  readonly lists: Pick<LiveLists, 'add' | 'remove' | 'size'>;
  readonly feeds: Pick<LiveFeeds, 'add' | 'remove' | 'size'>;
  /** Polls soon, for new watchers. */
  wake(): void;
  /** Resolves when the last poll has ended. */
  stop(): Promise<void>;
}

/** What the last poll saw. */
interface Seen {
  /** The checkpoint of each partition; for a live inline version, the end of the log. */
  readonly checkpoints: readonly GlobalPosition[];
  /** All changes up to here were served. Appends fold into a live inline version in any order, so changes above its horizon wait. */
  readonly floors: readonly GlobalPosition[];
  /** Delivered rows are at least of this position, and no new change can appear at or below it: the lowest of the floors. */
  readonly complete: PositionToken;
  /** The history's `cuts` when it was read. */
  readonly cuts: number;
  /** When the server was started. Undefined if the registry did not contain the version. */
  readonly serverStart: bigint | undefined;
  /** Changes up to here may have been pruned by then. */
  readonly forgotten: GlobalPosition;
  readonly readAt: number;
}

// With more batches than this, reading all watched rows again is cheaper than reading each batch.
const maxBatches = 200;
const longestBackoff = 5000;

/**
 * One poll uses one snapshot of the database. It reads how far the version is, which keys changed since the last poll, and the rows and lists
 * that these keys or new watchers concern. Everything that a poll delivers therefore belongs to one position, and between a watcher's first
 * state and the changes after it nothing is lost or doubled.
 */
export function createFollower(options: FollowerOptions): Follower {
  const { db, readSchema, projection, history, onError } = options;
  const rows = createLiveRows(projection, readSchema);
  const lists = createLiveLists(projection, readSchema);
  const feeds = createLiveFeeds(projection, readSchema, options.feedLimits ?? feedLimits);
  let seen: Seen | undefined;
  /** A poll was requested: it reads even if no checkpoint has moved. */
  let requested = false;
  let isPolling = false;
  // Checkpoints heard while a poll is due or under way. What that poll did not see is read by the next one. They come in any order.
  const notified = new Set<GlobalPosition>();
  const poller = createPoller({
    ...options.polling,
    poll,
    onError(error) {
      requested = true;
      onError(error);
    },
    // New work waits for the end of the backoff too.
    backoff: (failures) => Math.min(50 * 2 ** failures, longestBackoff),
  });

  const unsubscribe = options.positions.onCheckpoint(projection, (checkpoint) => {
    if (checkpoint !== undefined && (requested || isPolling)) notified.add(checkpoint);
    else if (checkpoint === undefined || isNew(checkpoint)) wake();
  });

  // Delivered rows may come from events that are gone. The next poll checks.
  const forget = history?.onChange(() => wake());

  /** Any different checkpoint counts, not only a higher one: a version may have gone back. */
  function isNew(checkpoint: GlobalPosition): boolean {
    return checkpoint !== seen?.complete.position;
  }

  function wake(): void {
    requested = true;
    poller.wake();
  }

  async function poll(): Promise<PollResult> {
    const asked = requested;
    let heldBack = false;
    const before = seen?.checkpoints;
    requested = false;
    isPolling = true;
    try {
      if (asked || rows.awaiting || lists.awaiting || feeds.awaiting || (await hasMoved())) {
        // Read before the snapshot, so the snapshot contains everything up to it.
        const horizon = projection.mode === 'inline' ? await readHorizon(db) : beginning;
        heldBack = await db.transaction((reads) => readAndServe(reads, horizon), {
          isolation: 'repeatable read',
          readOnly: true,
        });
      }
      if (heldBack) return 'soon';
      return asked || !isSame(before, seen?.checkpoints) ? 'found' : 'idle';
    } finally {
      isPolling = false;
      if ([...notified].some(isNew)) wake();
      notified.clear();
    }
  }

  async function hasMoved(): Promise<boolean> {
    const recent = await readChanges(db, projection, [], 0, toAnchor(beginning));
    const { checkpoints, live, readAt } = recent;
    if (isCut(recent) || isRestarted(recent)) return true;
    if (!seen || !isSame(checkpoints, seen.checkpoints)) return true;
    if (live && leastOf(seen.floors) < leastOf(checkpoints)) return true;
    seen = { ...seen, readAt };
    return false;
  }

  /** Returns whether changes are visible that a running append holds back. */
  async function readAndServe(reads: Transaction, horizon: GlobalPosition): Promise<boolean> {
    const startedAt = performance.now();
    const [recent, ahead] = await roundTrip<[RecentChanges, RowsAhead | null]>(reads.pipeline, [
      () => readChanges(reads, projection, seen?.floors ?? [], maxBatches + 1, toAnchor(horizon)),
      // Only if it can be sent in the same round trip.
      async () => (reads.pipeline ? rows.readAhead(reads) : null),
    ]);
    const { checkpoints, readAt, forgotten, serverStart } = recent;
    if (serverStart !== undefined) history?.note(serverStart);
    const cut = isCut(recent);
    if (cut) forgetAll();
    const position = completeUpToOf(recent, notBefore(horizon));
    const floors = recent.live ? [position] : checkpoints;
    const upTo = floors.reduce(laterPosition, beginning);
    const batches = recent.batches.filter(({ checkpoint }) => checkpoint <= upTo);
    const known = !cut && !isRestarted(recent) && changesAreKnown({ ...recent, batches }, seen, options.changesKept);
    if (!known) {
      rows.readAllAgain();
      lists.readAllAgain();
    }
    const newBatches = known ? batches : [];
    const serve = async () => {
      const changed = changedKeys(newBatches);
      await rows.serve(reads, changed, position, ahead);
      // From here on the lists know what concerns them: a failure below must not deliver the same changes again.
      lists.note(changed);
      const at = { position, anchor: cut && recent.live ? null : recent.anchor };
      const cuts = history?.cuts ?? 0;
      seen = { checkpoints, floors, complete: at, cuts, serverStart, forgotten, readAt };
      const ofFeeds = newBatches.map(({ checkpoint, keys }) => ({ position: checkpoint, keys }));
      await feeds.serve(reads, { batches: known ? ofFeeds : undefined, at, upTo });
      await lists.serve(reads, changed, position);
    };
    if (isTracing) await tracedFollow({ projection, batches: newBatches, position, startedAt }, serve);
    else await serve();
    return batches.length < recent.batches.length;
  }

  function toAnchor(horizon: GlobalPosition): ToAnchor {
    return { known: seen?.complete.position ?? null, complete: notBefore(horizon) };
  }

  /** The horizon, or where an earlier one was. */
  function notBefore(horizon: GlobalPosition): GlobalPosition {
    return laterPosition(horizon, seen?.complete.position ?? beginning);
  }

  /** Whether the log now has other events than those that led to the delivered rows. */
  function isCut({ knownAnchor, serverStart }: RecentChanges): boolean {
    const anchor = seen?.complete.anchor;
    return typeof anchor === 'string' && serverStart !== undefined && knownAnchor !== anchor;
  }

  /** Whether the server was started again. Events below the known anchor may be gone, so every row and list is read again. */
  function isRestarted({ serverStart }: RecentChanges): boolean {
    return seen?.serverStart !== undefined && serverStart !== undefined && serverStart !== seen.serverStart;
  }

  function forgetAll(): void {
    // Another component may have reported the cut already.
    if (seen && history?.cuts === seen.cuts) history.cut(seen.complete.position);
    seen = undefined;
    rows.historyChanged();
    lists.historyChanged();
    feeds.historyChanged();
  }

  function changedKeys(newBatches: readonly RecentBatch[]): Map<string, RowKey> {
    const keys = new Map<string, RowKey>();
    for (const raw of newBatches.flatMap((batch) => batch.keys)) {
      const key = projection.keyColumns.map((name, index) => projection.codec.decodeValue(name, raw[index]));
      keys.set(keyText(key), key);
    }
    return keys;
  }

  return {
    projection,
    rows,
    lists,
    feeds,
    wake,
    async stop() {
      unsubscribe();
      forget?.();
      await poller.stop();
    },
  };
}

interface TracedFollow {
  readonly projection: Pick<Projection, 'name' | 'version'>;
  /** The batches whose changes are served. */
  readonly batches: readonly RecentBatch[];
  readonly position: GlobalPosition;
  readonly startedAt: number;
}

/** Serves changes to subscribers in a span: within the span of the batch that wrote them, and linked to them if there are several. */
function tracedFollow(follow: TracedFollow, serve: () => Promise<void>): Promise<void> {
  const { projection, batches, position, startedAt } = follow;
  const { name, version } = projection;
  const attributes = { 'refold.projection': name, 'refold.version': version, 'refold.position': position.toString() };
  const causes = causesOf(batches.map(({ traceparent }) => traceparent));
  return tracedEffect(`follow ${name}@${version}`, { kind: 'consumer', attributes, startedAt }, causes, serve);
}

function isSame(a: readonly GlobalPosition[] | undefined, b: readonly GlobalPosition[] | undefined): boolean {
  return a?.length === b?.length && (a ?? []).every((checkpoint, partition) => checkpoint === b?.[partition]);
}

/** False if the version started again, if changes may have been pruned since the last poll, or if there are too many. */
function changesAreKnown(recent: RecentChanges, seen: Seen | undefined, changesKept: number): boolean {
  if (!seen) return true;
  const { checkpoints, batches, forgotten, readAt } = recent;
  if (forgotten !== seen.forgotten && forgotten > leastOf(seen.floors)) return false;
  const before = seen.checkpoints;
  if (checkpoints.length !== before.length || batches.length > maxBatches) return false;
  if (checkpoints.some((checkpoint, partition) => checkpoint < (before[partition] ?? beginning))) return false;
  return isSame(checkpoints, before) || readAt - seen.readAt <= changesKept;
}

/**
 * Up to here, rows in the snapshot include every event. A live inline version folds whatever is below the horizon, which was read before. But a
 * version that appends are about to leave has only reached its departure, and events above it may already be below the horizon.
 */
function completeUpToOf({ live, checkpoints }: RecentChanges, horizon: GlobalPosition): GlobalPosition {
  return leastOf(live ? [horizon, ...checkpoints] : checkpoints);
}

function leastOf([first = beginning, ...others]: readonly GlobalPosition[]): GlobalPosition {
  return others.reduce((least, one) => (one < least ? one : least), first);
}
