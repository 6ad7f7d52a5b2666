import { sameAccess } from '../../access.ts';
import type { PollingOptions } from '../../config/runtime-options.ts';
import { RefoldError } from '../../errors.ts';
import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Pins, ServedVersion, VersionMap } from '../../projections/projection/version-map.ts';
import { tokenIn } from '../../projections/queries/change-cursor.ts';
import type { LiveOptions, LiveReadModels } from '../../schema/contract/operation-context.ts';
import { readAnchor } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { History } from '../consumers/history.ts';
import type { Positions } from '../reads/positions.ts';
import { waitForRows } from '../reads/wait-for-rows.ts';
import type { FeedLimits } from './feed-reads.ts';
import { createFeedSubscription } from './feed-subscription.ts';
import { createFollower, type Follower } from './follower.ts';
import { createListSubscription } from './list-subscription.ts';
import { LiveMessageIterator } from './live-message-iterator.ts';
import { accessSwitched, type LiveSubscription } from './live-subscription.ts';
import { createRowSubscription } from './row-subscription.ts';

export interface LiveReadModelsOptions {
  /** The database that holds the read tables, created with a statement timeout. */
  readonly db: Database;
  readonly readSchema: string;
  readonly versions: {
    current(): VersionMap;
    pinned(pins: Pins): VersionMap;
    /** Returns a function that removes the listener. */
    onChange(listener: () => void): () => void;
    /** Reads the registry now, instead of at the next notification. */
    refresh(): Promise<void>;
  };
  readonly positions: Pick<Positions, 'waitFor' | 'forget' | 'progress' | 'onCheckpoint'>;
  /** The polling interval of a version without notifications. Milliseconds. */
  readonly polling?: Required<Pick<PollingOptions, 'min' | 'max' | 'step'>>;
  /**
   * Changes up to this age are certainly not pruned yet, in milliseconds. If the database was unreachable for longer, everything that is
   * watched is read again.
   * @default 300000, half of the ten minutes for which changes are at least kept
   */
  readonly changesKept?: number;
  /** Limits for one read of a change feed. */
  readonly feedLimits?: FeedLimits;
  /** Receives and reports changes of the history. @default none */
  readonly history?: History;
  /** The most changed rows that wait for a slow consumer of a change feed. @default 1000 */
  readonly maxWaiting?: number;
  /** Receives each failure of the database. Subscriptions survive them. */
  readonly onError?: (error: unknown) => void;
}

/** The subscriptions of a process. */
export interface LiveReadModelSource extends LiveReadModels {
  /** The number of open subscriptions. */
  readonly subscriptions: number;
  /** Ends all subscriptions. */
  close(): Promise<void>;
}

const defaultPolling = { min: 100, max: 2000, step: 100 };

export function createLiveReadModels(options: LiveReadModelsOptions): LiveReadModelSource {
  const { db, readSchema, versions, positions, polling = defaultPolling, changesKept = 300_000 } = options;
  const { feedLimits, maxWaiting = 1000 } = options;
  const followers = new Map<Projection, Follower>();
  const stopping = new Set<Promise<void>>();
  const open = new Set<{ follow(): void; end(): void }>();
  let closed = false;

  const unsubscribe = versions.onChange(() => {
    for (const subscription of open) subscription.follow();
    stopIdle();
  });

  function followerOf(projection: Projection): Follower {
    const running = followers.get(projection);
    if (running) return running;
    const onError = options.onError ?? (() => {});
    const follower = createFollower({
      db,
      readSchema,
      projection,
      positions,
      polling,
      changesKept,
      feedLimits,
      history: options.history,
      onError,
    });
    followers.set(projection, follower);
    return follower;
  }

  function stopIdle(): void {
    for (const [projection, follower] of followers) {
      if (follower.rows.size + follower.lists.size + follower.feeds.size > 0) continue;
      followers.delete(projection);
      const stop = follower.stop();
      stopping.add(stop);
      void stop.then(() => stopping.delete(stop));
    }
  }

  function subscribe<T>(
    declared: Projection,
    { after, pinned = false }: LiveOptions,
    create: (wake: () => void) => LiveSubscription<T>,
    known: PositionToken | null = null,
  ): AsyncIterableIterator<T> {
    let ending: AbortController | undefined;
    let over = false;
    let follower: Follower | undefined;
    const messages = new LiveMessageIterator<T>({
      start: () => void start().catch((error: unknown) => messages.fail(error)),
      take: () => subscription.take(),
      stop() {
        over = true;
        ending?.abort();
        open.delete(entry);
        leave();
        stopIdle();
      },
    });
    const subscription = create(() => messages.wake());
    const entry = { follow, end: () => messages.end() };

    async function start(): Promise<void> {
      if (closed) return messages.end();
      open.add(entry);
      if (!pinned) await servedVersion(declared);
      if (after !== null && !over && !(known && (await isGone(known)))) await waitFor(after);
      if (!over) follow();
    }

    async function waitFor(position: GlobalPosition): Promise<void> {
      ending = new AbortController();
      for (let isThere = false; !isThere; ) {
        const served = pinned ? servedNow()?.projection : await servedVersion(declared);
        if (!served) return;
        isThere = await waitForRows({ db, positions, signal: ending.signal }, served, position);
        // A rebuild has moved the rows to another table, and this process does not know yet.
        if (!isThere) await versions.refresh();
      }
    }

    function servedNow(): ServedVersion | undefined {
      const { name, version } = declared;
      return (pinned ? versions.pinned(new Map([[name, version]])) : versions.current()).served.get(name);
    }

    /** Attaches to the version that is served now; to none while none is active. */
    function follow(): void {
      let served: ServedVersion | undefined;
      try {
        served = servedNow();
      } catch (error) {
        messages.fail(error); // the pinned version is no longer maintained
        return;
      }
      if (served?.active && served.projection === follower?.projection) return;
      leave();
      if (!served?.active) return;
      try {
        if (!sameAccess(declared, served.projection)) throw accessSwitched(declared, served.projection);
        const next = followerOf(served.projection);
        subscription.attach(next);
        follower = next;
        next.wake();
      } catch (error) {
        messages.fail(error);
      }
    }

    function leave(): void {
      if (follower) subscription.detach();
      follower = undefined;
    }

    return messages;
  }

  /** Whether a position belongs to a history that is gone. Do not wait for such a position: its client starts over. */
  async function isGone({ position, anchor }: PositionToken): Promise<boolean> {
    return (await readAnchor(db, position)).anchor !== anchor;
  }

  async function servedVersion(declared: Projection): Promise<Projection> {
    const served = versions.current().served.get(declared.name);
    if (served?.active) return served.projection;
    const { state, position, head, progress } = await positions.progress(served?.projection ?? declared);
    throw new RefoldError(
      'PROJECTION_NOT_READY',
      state === 'active'
        ? `The table of ${declared.id} can't be read. Ask again later.`
        : `No version of ${declared.name} is active yet; ${declared.id} is ${state} at position ${position} of ${head}.`,
      {
        projection: declared.name,
        version: declared.version,
        state,
        position: position.toString(),
        head: head.toString(),
        progress,
      },
    );
  }

  return {
    row: (projection, key, columns, live) =>
      subscribe(projection, live, (wake) =>
        createRowSubscription({ projection, key, columns, after: live.after, wake }),
      ),
    list: (projection, query, live) =>
      subscribe(projection, live, (wake) =>
        createListSubscription({ projection, query, readSchema, after: live.after, wake }),
      ),
    changes(projection, query, live) {
      // Without a version and generation, the version may not have reached the position yet.
      const since = query.since && !query.since.rows ? tokenIn(query.since) : null;
      const after = since && since.position > (live.after ?? beginning) ? since.position : live.after;
      const known = since?.anchor ? since : null;
      return subscribe(
        projection,
        { ...live, after },
        (wake) =>
          createFeedSubscription({
            ...{ projection, query, readSchema, maxWaiting, wake },
            after: known ? live.after : after,
          }),
        known,
      );
    },
    get subscriptions() {
      return open.size;
    },
    async close() {
      closed = true;
      unsubscribe();
      for (const subscription of [...open]) subscription.end();
      await Promise.all(stopping);
    },
  };
}
