import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents } from '../../../src/events/event-family.ts';
import { beginning, globalPosition } from '../../../src/events/global-position.ts';
import { t } from '../../../src/projections/columns/column.ts';
import { defineProjection } from '../../../src/projections/declaration/define-projection.ts';
import { parseCursor } from '../../../src/projections/queries/change-cursor.ts';
import { createFeedSubscription } from '../../../src/runtime/live/feed-subscription.ts';
import type { FeedWatcher } from '../../../src/runtime/live/feed-watcher.ts';
import type { Follower } from '../../../src/runtime/live/follower.ts';

const events = defineEvents('stock', { Counted: z.object({}) });
const at = { position: globalPosition('7'), anchor: null };

function versionWatchedBy(version: number, watchers: Set<FeedWatcher>): Follower {
  const projection = defineProjection({
    name: 'stock',
    version,
    events,
    table: { item: t.text().primaryKey() },
    key: (event) => event.streamId,
    evolve: { Counted: () => null },
  });
  const watched = {
    add: (watcher: FeedWatcher) => void watchers.add(watcher),
    remove: (watcher: FeedWatcher) => void watchers.delete(watcher),
    size: 0,
  };
  const none = { add: () => {}, remove: () => {}, size: 0 };
  return { projection, rows: none, lists: none, feeds: watched, wake() {}, async stop() {} };
}

function subscription(cursor: string | null) {
  const watchers = new Set<FeedWatcher>();
  const since = cursor === null ? null : parseCursor(cursor);
  const feed = createFeedSubscription({
    projection: versionWatchedBy(1, watchers).projection,
    query: { where: null, columns: ['item'], since, snapshot: true },
    readSchema: 'refold_reads',
    after: null,
    maxWaiting: 100,
    wake() {},
    fail() {},
  });
  feed.attach(versionWatchedBy(1, watchers));
  return {
    feed,
    watcher: () => [...watchers][0] as FeedWatcher, // one version is attached
    moveTo(version: number) {
      feed.detach();
      feed.attach(versionWatchedBy(version, watchers));
    },
  };
}

/** Serves the request as the feeds of a version do: a request without a cursor gets all rows. */
function serve(watcher: FeedWatcher): void {
  const request = watcher.request(at.position);
  if (request?.kind !== 'begin' || request.since) throw new Error(`A beginning is asked for, not ${request?.kind}.`);
  const generation = { relation: 'stock_1', generation: 1, floor: beginning, reached: at.position } as never;
  watcher.begin(request.lagged, generation, {
    at,
    upTo: at.position,
    part: { changes: [], from: at, after: null },
  });
}

test('a reset by a lost tail keeps its reason over a change of version and a second lost tail, until the consumer has it', () => {
  for (const cursor of ['5.7e13af71@1.1', null]) {
    const { feed, watcher, moveTo } = subscription(cursor);
    if (cursor === null) {
      serve(watcher());
      expect(feed.take()).toMatchObject({ reset: true, lagged: null });
    }
    watcher().historyChanged();
    watcher().historyChanged();
    moveTo(2);
    serve(watcher());
    // The message waits for the consumer while the versions change again.
    moveTo(3);
    serve(watcher());
    expect(feed.take()).toMatchObject({ reset: true, lagged: 'HISTORY_CHANGED' });
    watcher().historyChanged();
    serve(watcher());
    expect(feed.take()).toMatchObject({ reset: true, lagged: 'HISTORY_CHANGED' });
  }
});

test('a lost tail is no reason for a consumer that was told nothing', () => {
  const { feed, watcher } = subscription(null);
  watcher().historyChanged();
  serve(watcher());
  expect(feed.take()).toMatchObject({ reset: true, lagged: null });
});
