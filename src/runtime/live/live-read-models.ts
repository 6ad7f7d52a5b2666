import type { PollingOptions } from '../../config/runtime-options.ts';
import { beginning } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { tokenIn } from '../../projections/queries/change-cursor.ts';
import type { LiveReadModels } from '../../schema/contract/operation-context.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { History } from '../consumers/history.ts';
import type { Positions } from '../reads/positions.ts';
import type { FeedLimits } from './feed-reads.ts';
import { createFeedSubscription } from './feed-subscription.ts';
import { createFollowers } from './followers.ts';
import { createListSubscription } from './list-subscription.ts';
import { createRowSubscription } from './row-subscription.ts';
import { type OpenSubscription, type SubscriptionParts, subscribeToVersion } from './subscribe-to-version.ts';

export interface LiveReadModelsOptions {
  /** The database that holds the read tables, created with a statement timeout. */
  readonly db: Database;
  /** The database of a version, if there are several. @default `db` */
  readonly dbOf?: (projection: Projection) => Database;
  readonly readSchema: string;
  readonly versions: SubscriptionParts['versions'] & {
    /** Returns a function that removes the listener. */
    onChange(listener: () => void): () => void;
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
  const { feedLimits, history, onError = () => {}, maxWaiting = 1000, dbOf = () => db } = options;
  const followers = createFollowers({
    dbOf,
    readSchema,
    positions,
    polling,
    changesKept,
    feedLimits,
    history,
    onError,
  });
  const open = new Set<OpenSubscription>();
  const closing = new AbortController();
  const parts: SubscriptionParts = { db, dbOf, versions, positions, followers, open, closed: closing.signal };

  const unsubscribe = versions.onChange(() => {
    for (const subscription of open) subscription.follow();
    followers.stopIdle();
  });

  return {
    row: (projection, key, columns, live) =>
      subscribeToVersion(parts, {
        declared: projection,
        live,
        since: null,
        keys: [key],
        create: (wake, fail) => createRowSubscription({ projection, key, columns, after: live.after, wake, fail }),
      }),
    list: (projection, query, live) =>
      subscribeToVersion(parts, {
        declared: projection,
        live,
        since: null,
        create: (wake, fail) =>
          createListSubscription({ projection, query, readSchema, after: live.after, wake, fail }),
      }),
    changes(projection, query, live) {
      // Without a version and generation, the version may not have reached the position yet.
      const since = query.since && !query.since.rows ? tokenIn(query.since) : null;
      const after = since && since.position > (live.after ?? beginning) ? since.position : live.after;
      const known = since?.anchor ? since : null;
      const feed = { projection, query, readSchema, maxWaiting, after: known ? live.after : after };
      return subscribeToVersion(parts, {
        declared: projection,
        live: { ...live, after },
        since: known,
        create: (wake, fail) => createFeedSubscription({ ...feed, wake, fail }),
      });
    },
    get subscriptions() {
      return open.size;
    },
    async close() {
      closing.abort();
      unsubscribe();
      for (const subscription of [...open]) subscription.end();
      await followers.stopped();
    },
  };
}
