import type { Projection } from '../../projections/projection/projection.ts';
import { createFollower, type Follower, type FollowerOptions } from './follower.ts';

/** The followers of a process: one for each version that it has subscriptions to. */
export interface Followers {
  /** Starts the version's follower if it has none. */
  of(projection: Projection): Follower;
  /** Stops followers without subscriptions. */
  stopIdle(): void;
  /** Resolves when all stopped followers have ended their last round. */
  stopped(): Promise<void>;
}

export interface FollowersOptions extends Omit<FollowerOptions, 'projection' | 'db'> {
  /** The database of a version. */
  dbOf(projection: Projection): FollowerOptions['db'];
}

export function createFollowers({ dbOf, ...options }: FollowersOptions): Followers {
  const running = new Map<Projection, Follower>();
  const stopping = new Set<Promise<void>>();
  return {
    of(projection) {
      const follower = running.get(projection) ?? createFollower({ ...options, db: dbOf(projection), projection });
      running.set(projection, follower);
      return follower;
    },
    stopIdle() {
      for (const [projection, follower] of running) {
        if (follower.rows.size + follower.lists.size + follower.feeds.size > 0) continue;
        running.delete(projection);
        const stop = follower.stop();
        stopping.add(stop);
        void stop.then(() => stopping.delete(stop));
      }
    },
    async stopped() {
      await Promise.all(stopping);
    },
  };
}
