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

/** What a watcher wants next that is not at the head: to begin, a page of all rows, or a page of changes. */
export type FeedWish =
  /** `lagged`: why there is nothing to go on from, where that is known already. */
  | { readonly kind: 'begin'; readonly since: ChangeCursor | null; readonly lagged: LagReason | null }
  | { readonly kind: 'rows'; readonly after: RowKey; readonly from: PositionToken }
  | { readonly kind: 'changes'; readonly after: GlobalPosition };

/** A part of all rows, as they are. */
export interface RowsPart {
  readonly changes: readonly RowChange[];
  /** The snapshot is of here: changes after it complete it. */
  readonly from: PositionToken;
  /** The last key, where there are more rows. */
  readonly after: RowKey | null;
}

/** Changes up to a position. */
export interface ChangesPart {
  readonly changes: readonly RowChange[];
  readonly at: PositionToken;
  /** False: from here on the watcher gets the changes of each round. */
  readonly more: boolean;
}

/** Somebody who follows the changes of one version. */
export interface FeedWatcher {
  readonly query: Pick<ChangeFeedQuery, 'where' | 'columns' | 'snapshot'>;
  /** Whether it gets the changes of each round. */
  readonly atHead: boolean;
  /** Whether it has room for something that it must ask for. */
  readonly wants: boolean;
  /** What it wants of a round at a position. */
  wish(position: GlobalPosition): FeedWish | null;
  /** What it knows is no basis any more, or was nothing. The first part of all rows, if it wants them. */
  begin(lagged: LagReason | null, kept: ChangesKept, at: PositionToken, part: RowsPart | null): void;
  /** What it knows is a basis: changes after it follow. */
  resume(kept: ChangesKept): void;
  receiveRows(part: RowsPart): void;
  receiveChanges(part: ChangesPart): void;
  /** It has missed changes of a round, and must ask for them. */
  fallBehind(): void;
  /** What it wanted could not be read for now. */
  failed(): void;
  /** Events are gone that led to what it knows. */
  historyChanged(): void;
}

/** The changes of one round. */
export interface FeedRound {
  /** Undefined where they are not known. */
  readonly batches: readonly ChangeBatch[] | undefined;
  /** All changes up to here have been told after this round. */
  readonly at: PositionToken;
}

/** All watchers of the changes of one version. */
export interface LiveFeeds {
  add(watcher: FeedWatcher): void;
  remove(watcher: FeedWatcher): void;
  readonly size: number;
  /** Whether somebody may want something whether or not there are changes. */
  readonly awaiting: boolean;
  /** Has all of them begin again: events are gone. */
  historyChanged(): void;
  /** Those at the head share one statement; the others are given a part of what they want. */
  serve(reads: Queryable, round: FeedRound): Promise<void>;
}

/** What bounds the memory that one round takes, and one message. */
export interface FeedLimits {
  /** Keys of changed rows that are read at once; a batch with more is told as all rows. */
  readonly keys: number;
  /** Batches of each partition that are read at once. */
  readonly batches: number;
  /** Rows in a part of all of them. */
  readonly rows: number;
}

// A message of so many rows is about a megabyte.
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
      behind(heads); // the round will not come again
      throw error;
    }
  }

  /** Reads the rows once for all, with what any of the queries needs of them. */
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

  /** Nothing where this process has not heard yet that the rows are elsewhere: it will, and watchers begin with them. */
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

  /** What is beyond where all is complete is not anchored: another event may still appear below it. */
  async function anchored(reads: Reads, position: GlobalPosition, complete: GlobalPosition): Promise<PositionToken> {
    return { position, anchor: position <= complete ? await anchorOf(reads, position) : null };
  }

  async function anchorOf(reads: Reads, position: GlobalPosition): Promise<string | null> {
    return reads.once(`anchor ${position}`, async (db) => (await readAnchor(db, position)).anchor);
  }

  /** Null where the changes since then are all there. */
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

/** Each key once, where it changed last, in the order of these positions. */
function latestOf(projection: Projection, batches: readonly ChangeBatch[]): Latest {
  const latest = new Map<string, { key: RowKey; position: GlobalPosition }>();
  for (const { keys, position } of batches.toSorted(byPosition)) {
    for (const raw of keys) {
      const key = projection.keyColumns.map((name, index) => projection.codec.decodeValue(name, raw[index]));
      const text = keyText(key);
      latest.delete(text); // to the end
      latest.set(text, { key, position });
    }
  }
  return latest;
}

function byPosition(a: ChangeBatch, b: ChangeBatch): number {
  return a.position < b.position ? -1 : a.position > b.position ? 1 : 0;
}

/** The reads of one round. Many who come back at once, as after a restart, want the same. */
interface Reads {
  once<T>(id: string, read: (db: Queryable) => Promise<T>): Promise<T>;
}

function createReads(db: Queryable): Reads {
  const known = new Map<string, Promise<unknown>>();
  return {
    once<T>(id: string, read: (db: Queryable) => Promise<T>): Promise<T> {
      const reading = known.get(id) ?? read(db);
      known.set(id, reading);
      return reading as Promise<T>; // one type for each kind of id
    },
  };
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
}
