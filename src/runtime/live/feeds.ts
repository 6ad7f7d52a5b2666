import type { GlobalPosition } from '../../events/global-position.ts';
import { laterToken, type PositionToken } from '../../events/position-token.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../projections/declaration/projection.ts';
import type { ChangeCursor } from '../../projections/queries/change-cursor.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import { matchesFilter } from '../../projections/queries/matches-filter.ts';
import type { ChangeFeedQuery, LagReason, RowChange } from '../../schema/contract/change-feed.ts';
import { readAnchor } from '../../store/log/horizon.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import {
  type ChangeBatch,
  type ChangesKept,
  readChangePage,
  readChangesKept,
} from '../../store/queries/change-feed.ts';
import { findByKeys, findPage, keyOf } from '../../store/queries/row-queries.ts';

/** A watcher's request for something that is not at the head: to begin, a chunk of all rows, or a chunk of changes. */
export type FeedWish =
  /** `lagged`: why there is no cursor to resume from, if that is already known. */
  | { readonly kind: 'begin'; readonly since: ChangeCursor | null; readonly lagged: LagReason | null }
  | { readonly kind: 'rows'; readonly after: RowKey; readonly from: PositionToken }
  | { readonly kind: 'changes'; readonly after: GlobalPosition };

/** A chunk of all rows in their current state. */
export interface RowsPart {
  readonly changes: readonly RowChange[];
  /** The position of the snapshot. Changes after it complete it. */
  readonly from: PositionToken;
  /** The last key, if there are more rows. */
  readonly after: RowKey | null;
}

/** Changes up to a position. */
export interface ChangesPart {
  readonly changes: readonly RowChange[];
  readonly at: PositionToken;
  /** False: from here on the watcher receives the changes of each round. */
  readonly more: boolean;
}

/** A subscription to the changes of one version. */
export interface FeedWatcher {
  readonly query: Pick<ChangeFeedQuery, 'where' | 'columns' | 'snapshot'>;
  /** Whether it receives the changes of each round. */
  readonly atHead: boolean;
  /** Whether it has a pending request and room for the result. */
  readonly wants: boolean;
  /** Returns its request for a round at a position. */
  wish(position: GlobalPosition): FeedWish | null;
  /** Starts over, because its cursor is missing or invalid. `part` is the first chunk of all rows, if it wants them. */
  begin(lagged: LagReason | null, kept: ChangesKept, at: PositionToken, part: RowsPart | null): void;
  /** Resumes from its cursor: the changes after it follow. */
  resume(kept: ChangesKept): void;
  receiveRows(part: RowsPart): void;
  receiveChanges(part: ChangesPart): void;
  /** It has missed the changes of a round, and must request them. */
  fallBehind(): void;
  /** Its request could not be served for now. */
  failed(): void;
  /** Events are gone that led to what it has delivered. */
  historyChanged(): void;
}

/** The changes of one round. */
export interface FeedRound {
  /** Undefined if unknown. */
  readonly batches: readonly ChangeBatch[] | undefined;
  /** After this round, all changes up to here are delivered. */
  readonly at: PositionToken;
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
  /** Serves a round. Watchers at the head share one statement; each of the others gets a chunk of what it requests. */
  serve(reads: Queryable, round: FeedRound): Promise<void>;
}

/** Limits for the memory of one round and one message. */
export interface FeedLimits {
  /** The most keys of changed rows per read. A batch with more is delivered as a new snapshot of all rows. */
  readonly keys: number;
  /** The most batches per partition and read. */
  readonly batches: number;
  /** The number of rows in a chunk of all rows. */
  readonly rows: number;
}

// A message with this many rows is about a megabyte.
export const feedLimits: FeedLimits = { keys: 5000, batches: 500, rows: 1000 };

export function createLiveFeeds(projection: Projection, readSchema: string, limits: FeedLimits): LiveFeeds {
  const watchers = new Set<FeedWatcher>();

  async function tellHead(reads: Queryable, { batches, at }: FeedRound): Promise<void> {
    const heads = [...watchers].filter((watcher) => watcher.atHead);
    if (heads.length === 0) return;
    try {
      const latest = batches && latestOf(projection, batches);
      if (!latest || latest.size > limits.keys) return behind(heads);
      const told = await changesTeller(
        reads,
        latest,
        heads.map(({ query }) => query),
      );
      for (const watcher of heads) {
        if (watchers.has(watcher)) watcher.receiveChanges({ changes: told(watcher.query), at, more: false });
      }
    } catch (error) {
      behind(heads); // the round is not repeated
      throw error;
    }
  }

  /** Reads the rows once for all watchers, with every column that one of the queries needs. */
  async function changesTeller(reads: Queryable, latest: Latest, queries: readonly FeedWatcher['query'][]) {
    const columns = new Set(queries.flatMap(({ columns, where }) => [...columns, ...filterColumns(where)]));
    const entries = [...latest.values()];
    const keys = entries.map(({ key }) => key);
    const rows = await findByKeys(reads, readSchema, projection, keys, [...columns]);
    const told = new Map<string, readonly RowChange[]>();
    return ({ where }: FeedWatcher['query']): readonly RowChange[] => {
      const id = textOf(where);
      const known = told.get(id);
      if (known) return known;
      const changes = entries.map(({ key, position }, index): RowChange => {
        const row = rows[index] ?? null;
        return row && matchesFilter(where, row)
          ? { operation: 'UPSERT', key, row, position }
          : { operation: 'DELETE', key, row: null, position };
      });
      told.set(id, changes);
      return changes;
    };
  }

  async function grant(reads: Reads, watcher: FeedWatcher, wish: FeedWish, at: PositionToken): Promise<void> {
    switch (wish.kind) {
      case 'begin': {
        const kept = await keptHere(reads);
        if (!kept) return;
        const lagged = wish.lagged ?? (wish.since && (await lagOf(reads, wish.since, kept)));
        if (!wish.since || lagged !== null) return grantBeginning(reads, watcher, lagged, kept, at);
        if (watchers.has(watcher)) watcher.resume(kept);
        return grantChanges(reads, watcher, wish.since.position, at);
      }
      case 'rows': {
        const part = await readRows(reads, watcher.query, wish.after, wish.from);
        if (watchers.has(watcher)) watcher.receiveRows(part);
        return;
      }
      case 'changes':
        return grantChanges(reads, watcher, wish.after, at);
    }
  }

  /** Returns undefined if the rows moved to another table and this process does not know yet. When it does, watchers start over with the new table. */
  async function keptHere(reads: Reads): Promise<ChangesKept | undefined> {
    const kept = await reads.once('kept', (db) => readChangesKept(db, projection));
    return kept?.tableName === projection.tableName ? kept : undefined;
  }

  async function grantBeginning(
    reads: Reads,
    watcher: FeedWatcher,
    lagged: LagReason | null,
    kept: ChangesKept,
    at: PositionToken,
  ): Promise<void> {
    const part = watcher.query.snapshot ? await readRows(reads, watcher.query, null, at) : null;
    if (watchers.has(watcher)) watcher.begin(lagged, kept, at, part);
  }

  async function readRows(
    reads: Reads,
    { where, columns }: FeedWatcher['query'],
    after: RowKey | null,
    from: PositionToken,
  ): Promise<RowsPart> {
    const { position } = from;
    return reads.once(`rows ${position} ${textOf([where, columns, after])}`, async (db) => {
      const page = await findPage(db, readSchema, projection, {
        ...{ where, columns, after, before: null, orderBy: [] },
        ...{ direction: 'forward', limit: limits.rows },
      });
      const changes = page.rows.map(
        (row: Row): RowChange => ({ operation: 'UPSERT', key: keyOf(projection, row), row, position }),
      );
      const last = page.hasNextPage ? changes.at(-1) : undefined;
      return { changes, from, after: last?.key ?? null };
    });
  }

  async function grantChanges(
    reads: Reads,
    watcher: FeedWatcher,
    after: GlobalPosition,
    at: PositionToken,
  ): Promise<void> {
    const { query } = watcher;
    const { batches, more } = await reads.once(`changes ${after}`, (db) =>
      readChangePage(db, projection, after, { mostBatches: limits.batches, mostKeys: limits.keys }),
    );
    const latest = latestOf(projection, batches);
    if (latest.size > limits.keys) {
      const kept = await keptHere(reads);
      return kept && grantBeginning(reads, watcher, 'TOO_MANY', kept, at);
    }
    const told = await reads.once(`changed ${after} ${textOf(query.columns)} ${textOf(query.where)}`, (db) =>
      changesTeller(db, latest, [query]),
    );
    const reached = more ? await anchored(reads, batches.at(-1)?.position ?? after, at.position) : at;
    if (watchers.has(watcher))
      watcher.receiveChanges({
        changes: told(query),
        at: laterToken({ position: after, anchor: null }, reached),
        more,
      });
  }

  /** Positions above the complete part of the log have no anchor: an event may still appear below them. */
  async function anchored(reads: Reads, position: GlobalPosition, complete: GlobalPosition): Promise<PositionToken> {
    return { position, anchor: position <= complete ? await anchorOf(reads, position) : null };
  }

  async function anchorOf(reads: Reads, position: GlobalPosition): Promise<string | null> {
    return reads.once(`anchor ${position}`, async (db) => (await readAnchor(db, position)).anchor);
  }

  /** Returns null if all changes since the cursor are available. */
  async function lagOf(
    reads: Reads,
    { position, anchor, rows }: ChangeCursor,
    kept: ChangesKept,
  ): Promise<LagReason | null> {
    if (anchor && anchor !== (await anchorOf(reads, position))) return 'HISTORY_CHANGED';
    if (rows && (rows.version !== projection.version || rows.generation !== kept.generation)) return 'REPLACED';
    if (position > kept.reached) return 'AHEAD';
    return position < kept.floor ? 'EXPIRED' : null;
  }

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
    async serve(db, round) {
      await tellHead(db, round);
      const reads = createReads(db);
      for (const watcher of [...watchers]) {
        const wish = watchers.has(watcher) ? watcher.wish(round.at.position) : null;
        if (!wish) continue;
        try {
          await grant(reads, watcher, wish, round.at);
        } catch (error) {
          watcher.failed();
          throw error;
        }
      }
    },
  };
}

function behind(heads: readonly FeedWatcher[]): void {
  for (const watcher of heads) watcher.fallBehind();
}

type Latest = ReadonlyMap<string, { readonly key: RowKey; readonly position: GlobalPosition }>;

/** Returns each key once, with its last change, in the order of the positions. */
function latestOf(projection: Projection, batches: readonly ChangeBatch[]): Latest {
  const latest = new Map<string, { key: RowKey; position: GlobalPosition }>();
  for (const { keys, position } of batches.toSorted(byPosition)) {
    for (const raw of keys) {
      const key = projection.keyColumns.map((name, index) => projection.codec.decodeValue(name, raw[index]));
      const text = keyText(key);
      latest.delete(text); // reinsert at the end
      latest.set(text, { key, position });
    }
  }
  return latest;
}

function byPosition(a: ChangeBatch, b: ChangeBatch): number {
  return a.position < b.position ? -1 : a.position > b.position ? 1 : 0;
}

/** The reads of one round, deduplicated: many subscriptions that return at once, as after a restart, need the same. */
interface Reads {
  once<T>(id: string, read: (db: Queryable) => Promise<T>): Promise<T>;
}

function createReads(db: Queryable): Reads {
  const known = new Map<string, Promise<unknown>>();
  return {
    once<T>(id: string, read: (db: Queryable) => Promise<T>): Promise<T> {
      const reading = known.get(id) ?? read(db);
      known.set(id, reading);
      return reading as Promise<T>; // each kind of id has one type
    },
  };
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
}
