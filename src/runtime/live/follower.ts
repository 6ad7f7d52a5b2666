import type { PollingOptions } from '../../config/runtime-options.ts';
import { beginning, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import { keyText, type Projection, type RowKey } from '../../projections/declaration/projection.ts';
import { readHorizon } from '../../store/log/horizon.ts';
import type { Database, Transaction } from '../../store/postgres/database.ts';
import { roundTrip } from '../../store/postgres/round-trip.ts';
import { type RecentBatch, type RecentChanges, readChanges, type ToAnchor } from '../../store/queries/live-queries.ts';
import type { History } from '../consumers/history.ts';
import type { Positions } from '../reads/positions.ts';
import { createLiveFeeds, type FeedLimits, feedLimits, type LiveFeeds } from './feeds.ts';
import { createLiveLists, type LiveLists } from './lists.ts';
import { createLiveRows, type LiveRows, type RowsAhead } from './rows.ts';

export interface FollowerOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly positions: Pick<Positions, 'onCheckpoint'>;
  /** How often to look where no notification comes. Milliseconds. */
  readonly polling: Required<Pick<PollingOptions, 'min' | 'max' | 'step'>>;
  /** Changes of this age are surely still kept, in milliseconds. */
  readonly changesKept: number;
  readonly feedLimits?: FeedLimits | undefined;
  /** Told of what a round finds of it. @default nobody is */
  readonly history?: History | undefined;
  onError(error: unknown): void;
}

/** Follows one version for all who watch its rows and lists. */
export interface Follower {
  readonly projection: Projection;
  readonly rows: Pick<LiveRows, 'add' | 'remove' | 'size'>;
  readonly lists: Pick<LiveLists, 'add' | 'remove' | 'size'>;
  readonly feeds: Pick<LiveFeeds, 'add' | 'remove' | 'size'>;
  /** Serves those who came, soon. */
  wake(): void;
  /** Resolves when its last round has ended. */
  stop(): Promise<void>;
}

/** Where the last round was. */
interface Seen {
  /** What was shown is at least of here: the least of the partitions. */
  readonly checkpoint: GlobalPosition;
  /** Of each partition; of a live inline version, the end of the log. */
  readonly checkpoints: readonly GlobalPosition[];
  /** All changes up to here were seen; of a live inline version, changes below others may still commit above it. */
  readonly floors: readonly GlobalPosition[];
  /** The changes above the floor that were seen. */
  readonly above: ReadonlySet<GlobalPosition>;
  /** No change up to here can still appear. */
  readonly complete: PositionToken;
  /** Of the history when it was read. */
  readonly cuts: number;
  /** Changes up to here may have been forgotten by then. */
  readonly forgotten: GlobalPosition;
  readonly readAt: number;
}

// More batches than this are not worth reading one by one: everything watched is read again.
const mostBatches = 200;
const longestBackoff = 5000;

/**
 * Works in rounds. One round is one snapshot of the database: where the version is, which keys it changed since the last
 * round, and the rows and lists that those concern, or that somebody newly watches. So all that a round gives is of one
 * position, and nothing between what a watcher was given first and the changes after it is lost or doubled.
 */
export function createFollower(options: FollowerOptions): Follower {
  const { db, readSchema, projection, polling, history, onError } = options;
  const rows = createLiveRows(projection, readSchema);
  const lists = createLiveLists(projection, readSchema);
  const feeds = createLiveFeeds(projection, readSchema, options.feedLimits ?? feedLimits);
  let seen: Seen | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  // What was told while a round was under way, which may have seen it; of partitions and late notifications in any order.
  const told = new Set<GlobalPosition>();
  let failures = 0;
  let interval = polling.min;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const unsubscribe = options.positions.onCheckpoint(projection, (checkpoint) => {
    if (checkpoint !== undefined && running !== undefined) told.add(checkpoint);
    else if (checkpoint === undefined || isNews(checkpoint)) wake();
  });

  // What was given may come from events that are gone: the next round finds out.
  const forget = history?.onChange(() => wake());

  /** Not only what is higher: a version may have gone back. */
  function isNews(checkpoint: GlobalPosition): boolean {
    return checkpoint !== seen?.checkpoint;
  }

  function wake(): void {
    again = true;
    // After a failure, what is new waits with the rest until the back-off is over.
    if (!running && failures === 0) begin();
  }

  function begin(): void {
    clearTimeout(timer);
    running = work().finally(() => {
      running = undefined;
      again ||= [...told].some(isNews);
      told.clear();
      if (stopped) return;
      if (again && failures === 0) begin();
      else timer = setTimeout(begin, failures === 0 ? interval : Math.min(50 * 2 ** failures, longestBackoff));
    });
  }

  async function work(): Promise<void> {
    // Whoever begins to watch in this turn of the event loop is served by this round.
    await new Promise((resolve) => setImmediate(resolve));
    if (stopped) return;
    const asked = again || failures > 0;
    const before = seen?.checkpoints;
    again = false;
    try {
      const news = asked || rows.awaiting || lists.awaiting || feeds.awaiting || (await hasMoved());
      if (news) {
        // Before the snapshot, so that what is at or below it is in the snapshot.
        const horizon = projection.mode === 'inline' ? await readHorizon(db) : beginning;
        await db.transaction((reads) => round(reads, horizon), { isolation: 'repeatable read', readOnly: true });
      }
      failures = 0;
      interval =
        asked || !isSame(before, seen?.checkpoints) ? polling.min : Math.min(interval + polling.step, polling.max);
    } catch (error) {
      failures++;
      if (!stopped) onError(error);
    }
  }

  async function hasMoved(): Promise<boolean> {
    const recent = await readChanges(db, projection, [], 0, toAnchor(beginning));
    const { checkpoints, live, readAt } = recent;
    if (isCut(recent)) return true;
    if (!seen || !isSame(checkpoints, seen.checkpoints)) return true;
    if (live && leastOf(seen.floors) < leastOf(checkpoints)) return true;
    seen = { ...seen, readAt };
    return false;
  }

  async function round(reads: Transaction, horizon: GlobalPosition): Promise<void> {
    const [recent, ahead] = await roundTrip<[RecentChanges, RowsAhead | null]>(reads.pipeline, [
      () => readChanges(reads, projection, seen?.floors ?? [], mostBatches + 1, toAnchor(horizon)),
      // Along with the first question, or not at all.
      async () => (reads.pipeline ? rows.readAhead(reads) : null),
    ]);
    const { checkpoints, readAt } = recent;
    if (recent.serverStart !== undefined) history?.note(recent.serverStart);
    const cut = isCut(recent);
    if (cut) forgetAll();
    const position = positionOf(recent, horizon);
    const known = !cut && changesAreKnown(recent);
    if (!known) {
      rows.readAllAgain();
      lists.readAllAgain();
    }
    const news = known ? recent.batches.filter(({ checkpoint }) => !seen?.above.has(checkpoint)) : [];
    const changed = changedKeys(news);
    await rows.serve(reads, changed, position, ahead);
    // From here on the lists know what concerns them: a failure below must not bring the same changes again.
    lists.note(changed);
    const floors = recent.live ? [horizon] : checkpoints;
    const seenAbove = recent.live ? recent.batches.filter(({ checkpoint }) => checkpoint > horizon) : [];
    const above = new Set(seenAbove.map(({ checkpoint }) => checkpoint));
    const complete = {
      position: recent.live ? laterPosition(horizon, seen?.complete.position ?? beginning) : position,
      anchor: cut && recent.live ? null : recent.anchor,
    };
    const { forgotten } = recent;
    const cuts = history?.cuts ?? 0;
    seen = { checkpoint: position, checkpoints, floors, above, complete, cuts, forgotten, readAt };
    const batches = known ? news.map(({ checkpoint, keys }) => ({ position: checkpoint, keys })) : undefined;
    await feeds.serve(reads, { batches, at: complete });
    await lists.serve(reads, changed, position);
  }

  function toAnchor(horizon: GlobalPosition): ToAnchor {
    const known = seen?.complete.position ?? null;
    return { known, complete: laterPosition(horizon, known ?? beginning) };
  }

  /** Whether the log has other events by now than those that led to what was given. */
  function isCut({ knownAnchor, serverStart }: RecentChanges): boolean {
    const anchor = seen?.complete.anchor;
    return typeof anchor === 'string' && serverStart !== undefined && knownAnchor !== anchor;
  }

  function forgetAll(): void {
    // Others may have found it before.
    if (seen && history?.cuts === seen.cuts) history.cut(seen.complete.position);
    seen = undefined;
    rows.historyChanged();
    lists.historyChanged();
    feeds.historyChanged();
  }

  /** Of a live inline version: whatever is there is shown, so the highest that was seen counts, and what is surely complete. */
  function positionOf(recent: RecentChanges, horizon: GlobalPosition): GlobalPosition {
    if (!recent.live) return leastOf(recent.checkpoints);
    const shown = [seen?.checkpoint ?? beginning, ...recent.batches.map(({ checkpoint }) => checkpoint)];
    return shown.reduce(laterPosition, horizon);
  }

  /** Not where the version began anew, where changes may have been forgotten since the last round, or where there are too many. */
  function changesAreKnown({ checkpoints, batches, forgotten, readAt }: RecentChanges): boolean {
    if (!seen) return true;
    if (forgotten !== seen.forgotten && forgotten > leastOf(seen.floors)) return false;
    const before = seen.checkpoints;
    if (checkpoints.length !== before.length || batches.length > mostBatches) return false;
    if (checkpoints.some((checkpoint, partition) => checkpoint < (before[partition] ?? beginning))) return false;
    return isSame(checkpoints, before) || readAt - seen.readAt <= options.changesKept;
  }

  function changedKeys(news: readonly RecentBatch[]): Map<string, RowKey> {
    const keys = new Map<string, RowKey>();
    for (const raw of news.flatMap((batch) => batch.keys)) {
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
      stopped = true;
      unsubscribe();
      forget?.();
      clearTimeout(timer);
      await running;
    },
  };
}

function isSame(a: readonly GlobalPosition[] | undefined, b: readonly GlobalPosition[] | undefined): boolean {
  return a?.length === b?.length && (a ?? []).every((checkpoint, partition) => checkpoint === b?.[partition]);
}

function leastOf([first = beginning, ...others]: readonly GlobalPosition[]): GlobalPosition {
  return others.reduce((least, one) => (one < least ? one : least), first);
}
