import type { PollingOptions } from '../define-config.ts';
import { RefoldError } from '../errors.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import type { Projection } from '../projections/projection.ts';
import type { VersionMap } from '../projections/version-map.ts';
import type { LiveReadModels } from '../schema/operation-context.ts';
import type { Database } from '../store/database.ts';
import { createFollower, type Follower } from './live-follower.ts';
import { createListSubscription } from './live-list-subscription.ts';
import { createMailbox } from './live-mailbox.ts';
import { createRowSubscription } from './live-row-subscription.ts';
import type { Subscription } from './live-subscription.ts';
import type { Positions } from './positions.ts';

export interface LiveReadModelsOptions {
  /** The database that holds the read tables; made with a statement timeout. */
  readonly db: Database;
  readonly readSchema: string;
  readonly versions: {
    current(): VersionMap;
    /** Returns what ends it. */
    onChange(listener: () => void): () => void;
  };
  readonly positions: Pick<Positions, 'waitFor' | 'progress' | 'onCheckpoint'>;
  /** How often a version is looked at where no notification comes. Milliseconds. */
  readonly polling?: Required<Pick<PollingOptions, 'min' | 'max' | 'step'>>;
  /**
   * Changes of this age are surely not pruned yet, in milliseconds. After a longer silence of the database everything that is
   * watched is read again.
   * @default 300000, half of the ten minutes that changes are kept at least
   */
  readonly changesKept?: number;
  /** Told of each failure of the database; subscriptions outlive it. */
  readonly onError?: (error: unknown) => void;
}

/** The subscriptions of a process. */
export interface LiveReadModelSource extends LiveReadModels {
  /** How many are open. */
  readonly subscriptions: number;
  /** Ends all of them. */
  close(): Promise<void>;
}

const defaultPolling = { min: 100, max: 2000, step: 100 };

export function createLiveReadModels(options: LiveReadModelsOptions): LiveReadModelSource {
  const { db, readSchema, versions, positions, polling = defaultPolling, changesKept = 300_000 } = options;
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
    const follower = createFollower({ db, readSchema, projection, positions, polling, changesKept, onError });
    followers.set(projection, follower);
    return follower;
  }

  function stopIdle(): void {
    for (const [projection, follower] of followers) {
      if (follower.rows.size + follower.lists.size > 0) continue;
      followers.delete(projection);
      const stop = follower.stop();
      stopping.add(stop);
      void stop.then(() => stopping.delete(stop));
    }
  }

  function subscribe<T>(
    declared: Projection,
    after: GlobalPosition | null,
    create: (wake: () => void) => Subscription<T>,
  ): AsyncIterableIterator<T> {
    const ending = new AbortController();
    let follower: Follower | undefined;
    const mailbox = createMailbox<T>({
      start: () => void start().catch((error: unknown) => mailbox.fail(error)),
      take: () => subscription.take(),
      stop() {
        ending.abort();
        open.delete(entry);
        leave();
        stopIdle();
      },
    });
    const subscription = create(() => mailbox.wake());
    const entry = { follow, end: () => mailbox.end() };

    async function start(): Promise<void> {
      if (closed) return mailbox.end();
      open.add(entry);
      const served = await servedVersion(declared);
      if (after !== null) await positions.waitFor(served, after, { signal: ending.signal });
      if (!ending.signal.aborted) follow();
    }

    /** Watches the version that is served now; none while none is active. */
    function follow(): void {
      const served = versions.current().served.get(declared.name);
      if (served?.active && served.projection === follower?.projection) return;
      leave();
      if (!served?.active) return;
      try {
        const next = followerOf(served.projection);
        subscription.attach(next);
        follower = next;
        next.wake();
      } catch (error) {
        mailbox.fail(error);
      }
    }

    function leave(): void {
      if (follower) subscription.detach();
      follower = undefined;
    }

    return mailbox.messages;
  }

  async function servedVersion(declared: Projection): Promise<Projection> {
    const served = versions.current().served.get(declared.name);
    if (served?.active) return served.projection;
    const { state, position, head, progress } = await positions.progress(served?.projection ?? declared);
    throw new RefoldError(
      'PROJECTION_NOT_READY',
      `No version of ${declared.name} is active yet; ${declared.id} is ${state} at position ${position} of ${head}.`,
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
    row: (projection, key, columns, { after }) =>
      subscribe(projection, after, (wake) => createRowSubscription({ projection, key, columns, after, wake })),
    list: (projection, query, { after }) =>
      subscribe(projection, after, (wake) => createListSubscription({ projection, query, readSchema, after, wake })),
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
