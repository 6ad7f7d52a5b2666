import type { PollingOptions } from '../define-config.ts';
import { beginning, type GlobalPosition } from '../events/global-position.ts';
import { keyText, type Projection, type RowKey } from '../projections/projection.ts';
import type { Database } from '../store/database.ts';
import { type RecentChanges, readChanges } from '../store/live-queries.ts';
import type { Queryable } from '../store/statement.ts';
import { createLiveLists, type LiveLists } from './live-lists.ts';
import { createLiveRows, type LiveRows } from './live-rows.ts';
import type { Positions } from './positions.ts';

export interface FollowerOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly positions: Pick<Positions, 'onCheckpoint'>;
  /** How often to look where no notification comes. Milliseconds. */
  readonly polling: Required<Pick<PollingOptions, 'min' | 'max' | 'step'>>;
  /** Changes of this age are surely still kept, in milliseconds. */
  readonly changesKept: number;
  onError(error: unknown): void;
}

/** Follows one version for all who watch its rows and lists. */
export interface Follower {
  readonly projection: Projection;
  readonly rows: Pick<LiveRows, 'add' | 'remove' | 'size'>;
  readonly lists: Pick<LiveLists, 'add' | 'remove' | 'size'>;
  /** Serves those who came, soon. */
  wake(): void;
  /** Resolves when its last round has ended. */
  stop(): Promise<void>;
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
  const { db, readSchema, projection, polling, onError } = options;
  const rows = createLiveRows(projection, readSchema);
  const lists = createLiveLists(projection, readSchema);
  let seen: { readonly checkpoint: GlobalPosition; readonly readAt: number } | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let failures = 0;
  let interval = polling.min;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const unsubscribe = options.positions.onCheckpoint(projection, (checkpoint) => {
    if (checkpoint === undefined || checkpoint !== seen?.checkpoint) wake();
  });

  function wake(): void {
    again = true;
    // After a failure, what is new waits with the rest until the back-off is over.
    if (!running && failures === 0) begin();
  }

  function begin(): void {
    clearTimeout(timer);
    running = work().finally(() => {
      running = undefined;
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
    const before = seen?.checkpoint;
    again = false;
    try {
      const news = asked || rows.awaiting || lists.awaiting || (await hasMoved());
      if (news) await db.transaction(round, { isolation: 'repeatable read', readOnly: true });
      failures = 0;
      interval = asked || before !== seen?.checkpoint ? polling.min : Math.min(interval + polling.step, polling.max);
    } catch (error) {
      failures++;
      if (!stopped) onError(error);
    }
  }

  async function hasMoved(): Promise<boolean> {
    const { checkpoint, readAt } = await readChanges(db, projection, null, 0);
    if (checkpoint !== seen?.checkpoint) return true;
    if (seen) seen = { ...seen, readAt };
    return false;
  }

  async function round(reads: Queryable): Promise<void> {
    const recent = await readChanges(reads, projection, seen?.checkpoint ?? null, mostBatches + 1);
    const position = recent.checkpoint ?? beginning;
    const known = changesAreKnown(recent, position);
    if (!known) {
      rows.readAllAgain();
      lists.readAllAgain();
    }
    const changed = known ? changedKeys(recent) : new Map<string, RowKey>();
    await rows.serve(reads, changed, position);
    // From here on the lists know what concerns them: a failure below must not bring the same changes again.
    lists.note(changed);
    seen = { checkpoint: position, readAt: recent.readAt };
    await lists.serve(reads, changed, position);
  }

  /** Not where the version began anew, where changes may have been forgotten since the last round, or where there are too many. */
  function changesAreKnown(recent: RecentChanges, position: GlobalPosition): boolean {
    if (!seen) return true;
    if (position < seen.checkpoint || recent.batches.length > mostBatches) return false;
    return position === seen.checkpoint || recent.readAt - seen.readAt <= options.changesKept;
  }

  function changedKeys(recent: RecentChanges): Map<string, RowKey> {
    const keys = new Map<string, RowKey>();
    for (const raw of recent.batches.flat()) {
      const key = projection.keyColumns.map((name, index) => projection.codec.decodeValue(name, raw[index]));
      keys.set(keyText(key), key);
    }
    return keys;
  }

  return {
    projection,
    rows,
    lists,
    wake,
    async stop() {
      stopped = true;
      unsubscribe();
      clearTimeout(timer);
      await running;
    },
  };
}
