import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { ChangeCursor } from '../../projections/queries/change-cursor.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import { matchesFilter } from '../../projections/queries/matches-filter.ts';
import type { LagReason, RowChange } from '../../schema/contract/change-feed.ts';
import { readAnchor } from '../../store/log/horizon.ts';
import {
  type ChangeBatch,
  type ChangesKept,
  readChangePage,
  readChangesKept,
} from '../../store/queries/change-feed.ts';
import { findByKeys, findPage, rowKey } from '../../store/queries/row-queries.ts';
import { logOf, type Queryable } from '../../store/statements/statement.ts';
import type { FeedQuery, PollEnd, RowsPart } from './feed-watcher.ts';

/** Limits for the memory of one poll and one message. */
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

/** The table whose changes are read. */
export interface FeedTable {
  readonly projection: Projection;
  readonly readSchema: string;
  readonly limits: FeedLimits;
}

/** Each key with its last change, in the order of the positions. */
export type LatestChanges = ReadonlyMap<string, { readonly key: RowKey; readonly position: GlobalPosition }>;

interface ChangesRead {
  readonly changes: readonly RowChange[];
  /** The position of the last change that was read. */
  readonly last: GlobalPosition;
  readonly more: boolean;
}

/** The reads of one poll, deduplicated: many subscriptions that return at once, as after a restart, need the same. */
export class FeedReads {
  readonly #db: Queryable;
  readonly #table: FeedTable;
  readonly #end: PollEnd;
  readonly #known = new Map<string, Promise<unknown>>();

  constructor(db: Queryable, table: FeedTable, end: PollEnd) {
    this.#db = db;
    this.#table = table;
    this.#end = end;
  }

  /**
   * Returns undefined if the rows moved to another table and this process does not know yet. When it does, watchers start over with the new
   * table.
   */
  async kept(): Promise<ChangesKept | undefined> {
    const { projection } = this.#table;
    const kept = await this.#once('kept', (db) => readChangesKept(db, projection));
    return kept?.tableName === projection.tableName ? kept : undefined;
  }

  /** Reads the next chunk of all rows. */
  rows({ where, columns }: FeedQuery, after: RowKey | null, from: PositionToken): Promise<RowsPart> {
    const { projection, readSchema, limits } = this.#table;
    const { position } = from;
    return this.#once(`rows ${position} ${textOf([where, columns, after])}`, async (db) => {
      const page = await findPage(db, readSchema, projection, {
        ...{ where, columns, after, before: null, orderBy: [] },
        ...{ direction: 'forward', limit: limits.rows },
      });
      const changes = page.rows.map(
        (row: Row): RowChange => ({ operation: 'UPSERT', key: rowKey(projection, row), row, position }),
      );
      const last = page.hasNextPage ? changes.at(-1) : undefined;
      return { changes, from, after: last?.key ?? null };
    });
  }

  /**
   * Reads the next changes. `too-many`: they concern more rows than may be read at once, or one read does not reach the end of partitions that are
   * ahead of the others. It can't be continued then, because changes may still appear below its last one.
   */
  async changes(after: GlobalPosition, query: FeedQuery): Promise<ChangesRead | 'too-many'> {
    const { projection, limits } = this.#table;
    const { at, upTo } = this.#end;
    const page = await this.#once(`changes ${after}`, (db) =>
      readChangePage(db, projection, after, { maxBatches: limits.batches, maxKeys: limits.keys }),
    );
    const batches = page.batches.filter(({ position }) => position <= upTo);
    const last = batches.at(-1)?.position ?? after;
    const more = page.more && batches.length === page.batches.length;
    const latest = latestOf(projection, batches);
    if (latest.size > limits.keys || (more && last > at.position)) return 'too-many';
    const changesFor = await this.#once(`changed ${after} ${textOf(query.columns)} ${textOf(query.where)}`, (db) =>
      readRowChanges(db, this.#table, latest, [query]),
    );
    return { changes: changesFor(query), last, more };
  }

  /** Positions above the complete part of the log have no anchor: an event may still appear below them. */
  async anchored(position: GlobalPosition, complete: GlobalPosition): Promise<PositionToken> {
    return { position, anchor: position <= complete ? await this.#anchor(position) : null };
  }

  /** Returns null if all changes since the cursor are available. */
  async lagOf({ position, anchor, rows }: ChangeCursor, kept: ChangesKept): Promise<LagReason | null> {
    const { version } = this.#table.projection;
    if (anchor && anchor !== (await this.#anchor(position))) return 'HISTORY_CHANGED';
    if (rows && (rows.version !== version || rows.generation !== kept.generation)) return 'REPLACED';
    if (position > kept.reached) return 'AHEAD';
    return position < kept.floor ? 'EXPIRED' : null;
  }

  #anchor(position: GlobalPosition): Promise<string | null> {
    return this.#once(`anchor ${position}`, async (db) => (await readAnchor(logOf(db), position)).anchor);
  }

  #once<T>(id: string, read: (db: Queryable) => Promise<T>): Promise<T> {
    const reading = this.#known.get(id) ?? read(this.#db);
    this.#known.set(id, reading);
    return reading as Promise<T>; // each kind of id has one type
  }
}

/** Reads the changed rows once for all queries, with every column that one of them needs. Equal filters get the same array. */
export async function readRowChanges(
  db: Queryable,
  { projection, readSchema }: FeedTable,
  latest: LatestChanges,
  queries: readonly FeedQuery[],
): Promise<(query: FeedQuery) => readonly RowChange[]> {
  const columns = new Set(queries.flatMap(({ columns, where }) => [...columns, ...filterColumns(where)]));
  const entries = [...latest.values()];
  const keys = entries.map(({ key }) => key);
  const rows = await findByKeys(db, readSchema, projection, keys, [...columns]);
  const byFilter = new Map<string, readonly RowChange[]>();
  return ({ where }) => {
    const id = textOf(where);
    const known = byFilter.get(id);
    if (known) return known;
    const changes = entries.map(({ key, position }, index): RowChange => {
      const row = rows[index] ?? null;
      return row && matchesFilter(where, row)
        ? { operation: 'UPSERT', key, row, position }
        : { operation: 'DELETE', key, row: null, position };
    });
    byFilter.set(id, changes);
    return changes;
  };
}

export function latestOf(projection: Projection, batches: readonly ChangeBatch[]): LatestChanges {
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

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
}
