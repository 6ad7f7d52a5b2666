import type { GlobalPosition } from '../../events/global-position.ts';
import { laterToken } from '../../events/position-token.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { LagReason } from '../../schema/contract/change-feed.ts';
import type { ChangeBatch, ChangesKept } from '../../store/queries/change-feed.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { type FeedLimits, FeedReads, type FeedTable, latestOf, readRowChanges } from './feed-reads.ts';
import type { FeedQuery, FeedRequest, FeedWatcher, PollEnd } from './feed-watcher.ts';
import { smallerPortion } from './rows.ts';

/** The changes of one poll. */
export interface FeedPoll extends PollEnd {
  /** Undefined if unknown. */
  readonly batches: readonly ChangeBatch[] | undefined;
}

/** All watchers of the changes of one version. */
export interface LiveFeeds {
  add(watcher: FeedWatcher): void;
  remove(watcher: FeedWatcher): void;
  readonly size: number;
  /** Whether a watcher may have a request even if there are no changes. */
  readonly awaiting: boolean;
  /** Makes all watchers start over, because events are gone. */
  historyChanged(): void;
  /** Serves a poll. Watchers at the head share one statement; each of the others gets a chunk of what it requests. */
  serve(reads: Queryable, poll: FeedPoll): Promise<void>;
}

export function createLiveFeeds(projection: Projection, readSchema: string, limits: FeedLimits): LiveFeeds {
  let table: FeedTable = { projection, readSchema, limits };
  const watchers = new Set<FeedWatcher>();
  return {
    add: (watcher) => void watchers.add(watcher),
    remove: (watcher) => void watchers.delete(watcher),
    get size() {
      return watchers.size;
    },
    get awaiting() {
      return [...watchers].some((watcher) => watcher.wants);
    },
    historyChanged() {
      for (const watcher of watchers) watcher.historyChanged();
    },
    async serve(db, poll) {
      await serveHeads(db, table, watchers, poll);
      const reads = new FeedReads(db, table, poll);
      for (const watcher of [...watchers]) {
        const request = watchers.has(watcher) ? watcher.request(poll.at.position) : null;
        if (!request) continue;
        try {
          const deliver = await chunkFor(reads, watcher.query, request, poll);
          // The watcher may have left meanwhile.
          if (watchers.has(watcher)) deliver?.(watcher);
        } catch (error) {
          watcher.failed();
          const rows = smallerPortion(table.limits.rows, error);
          if (rows === undefined) watcher.fail(error);
          else if (rows < table.limits.rows) table = { ...table, limits: { ...table.limits, rows, keys: rows } };
          throw error;
        }
      }
    },
  };
}

/** Delivers the changes of a poll to all watchers at the head, from one statement. */
async function serveHeads(
  db: Queryable,
  table: FeedTable,
  watchers: ReadonlySet<FeedWatcher>,
  { batches, at }: FeedPoll,
): Promise<void> {
  const heads = [...watchers].filter((watcher) => watcher.atHead);
  if (heads.length === 0) return;
  try {
    const latest = batches && latestOf(table.projection, batches);
    if (!latest || latest.size > table.limits.keys) return behind(heads);
    const queries = heads.map(({ query }) => query);
    const changesFor = await readRowChanges(db, table, latest, queries);
    for (const watcher of heads) {
      if (watchers.has(watcher)) watcher.receiveChanges({ changes: changesFor(watcher.query), at, more: false });
    }
  } catch (error) {
    behind(heads); // the poll is not repeated
    throw error;
  }
}

function behind(heads: readonly FeedWatcher[]): void {
  for (const watcher of heads) watcher.fallBehind();
}

type Deliver = (watcher: FeedWatcher) => void;

/** Reads what a watcher requests. Undefined if it can't be served in this poll. */
async function chunkFor(
  reads: FeedReads,
  query: FeedQuery,
  request: FeedRequest,
  poll: PollEnd,
): Promise<Deliver | undefined> {
  switch (request.kind) {
    case 'begin': {
      const kept = await reads.kept();
      if (!kept) return undefined;
      const lagged = request.lagged ?? (request.since && (await reads.lagOf(request.since, kept)));
      if (!request.since || lagged !== null) return beginning(reads, query, lagged, kept, poll);
      // Appends that are still running may change rows below the cursor. The client that has it may not have seen that.
      if (request.since.position > poll.at.position) return undefined;
      const changes = await changesChunk(reads, query, request.since.position, poll);
      return (watcher) => {
        watcher.resume(kept);
        changes?.(watcher);
      };
    }
    case 'rows': {
      const part = await reads.rows(query, request.after, request.from);
      return (watcher) => watcher.receiveRows(part);
    }
    case 'changes':
      return changesChunk(reads, query, request.after, poll);
  }
}

async function beginning(
  reads: FeedReads,
  query: FeedQuery,
  lagged: LagReason | null,
  kept: ChangesKept,
  { at, upTo }: PollEnd,
): Promise<Deliver> {
  const part = query.snapshot ? await reads.rows(query, null, at) : null;
  return (watcher) => watcher.begin(lagged, kept, { at, upTo, part });
}

async function changesChunk(
  reads: FeedReads,
  query: FeedQuery,
  after: GlobalPosition,
  poll: PollEnd,
): Promise<Deliver | undefined> {
  const { at } = poll;
  const page = await reads.changes(after, query);
  if (page === 'too-many') {
    const kept = await reads.kept();
    return kept && beginning(reads, query, 'TOO_MANY', kept, poll);
  }
  const { changes, more, last } = page;
  const reached = more ? await reads.anchored(last, at.position) : at;
  const part = { changes, at: laterToken({ position: after, anchor: null }, reached), more };
  return (watcher) => watcher.receiveChanges(part);
}
