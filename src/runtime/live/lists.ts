import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { PageQuery } from '../../projections/queries/row-query.ts';
import type { ListPlace, LiveListQuery, LiveListUpdate } from '../../schema/contract/operation-context.ts';
import { isLargeAnswer } from '../../store/postgres/database-errors.ts';
import { matchFilters } from '../../store/queries/live-queries.ts';
import { findPage, rowKey } from '../../store/queries/row-queries.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** The rows of a list at one time, in order, by the text of their keys. Immutable. */
export type ListWindow = ReadonlyMap<string, Row>;

/** A change from one window to the next. */
export interface WindowChange {
  readonly from: ListWindow;
  readonly to: ListWindow;
  /** Keys of the old window whose rows were written. */
  readonly written: ReadonlySet<string>;
  /** The same object for all watchers that have the old window. */
  readonly update: LiveListUpdate;
}

/** A subscription to one list. */
export interface ListWatcher {
  readonly query: LiveListQuery;
  /** The first window must not be older than this. */
  readonly floor: GlobalPosition;
  receiveWindow(window: ListWindow, position: GlobalPosition): void;
  receiveChange(change: WindowChange): void;
  /** What it wants has more bytes than an answer may have. */
  fail(error: unknown): void;
  /** Events are gone that led to what it has delivered. */
  historyChanged(): void;
}

/** All watchers of lists of one version. Equal lists are read only once. */
export interface LiveLists {
  /** The watcher receives the whole window in the next round. */
  add(watcher: ListWatcher): void;
  remove(watcher: ListWatcher): void;
  /** Delivers the whole window to all watchers in the next round, because the changes are unknown. */
  readAllAgain(): void;
  /** Like {@link LiveLists.readAllAgain}, because events are gone. */
  historyChanged(): void;
  readonly size: number;
  /** Whether there is something to read even without changes. */
  readonly awaiting: boolean;
  /** Records the keys that were changed up to a position. {@link serve} reads the lists that they concern. */
  note(changed: ReadonlyMap<string, RowKey>): void;
  /** Runs one statement to match the changes against all filters, and one for each list that they concern. */
  serve(reads: Queryable, changed: ReadonlyMap<string, RowKey>, position: GlobalPosition): Promise<void>;
}

interface LiveList {
  readonly id: string;
  readonly query: LiveListQuery;
  readonly watchers: Set<ListWatcher>;
  /** Undefined until the first read. */
  window: ListWindow | undefined;
  /** `stale`: must be read. `undecided`: must be read if a changed row matches its filter. */
  state: 'stale' | 'undecided' | 'current';
  /** Keys of the window that were written since it was read. */
  written: Set<string>;
  failures: number;
  /** The earliest time of the next read after a failure of this list, in milliseconds. */
  notBefore: number;
}

// Above this, a statement with all the keys costs more than reading the lists.
const maxKeysToMatch = 5000;

/** Returns the query for a list's window. */
export function windowQuery(query: LiveListQuery): PageQuery {
  const { where, orderBy, columns, first } = query;
  return { where, orderBy, columns, direction: 'forward', limit: first, after: null, before: null };
}

export function createLiveLists(projection: Projection, readSchema: string): LiveLists {
  const lists = new Map<string, LiveList>();
  const awaiting = new Set<ListWatcher>();
  let size = 0;

  async function decide(reads: Queryable, changed: ReadonlyMap<string, RowKey>): Promise<void> {
    const undecided = [...lists.values()].filter((list) => list.state === 'undecided');
    if (undecided.length === 0) return;
    const tooMany = changed.size > maxKeysToMatch;
    // If the statement fails, these changes are lost, so the lists must be read: mark them stale first.
    for (const list of undecided) list.state = 'stale';
    if (tooMany) return;
    const filters = undecided.map((list) => list.query.where);
    const matched = await matchFilters(reads, readSchema, projection, [...changed.values()], filters);
    for (const [index, list] of undecided.entries()) {
      if (matched[index] !== true) list.state = 'current';
    }
  }

  async function read(reads: Queryable, list: LiveList, position: GlobalPosition): Promise<void> {
    const page = await findPage(reads, readSchema, projection, windowQuery(list.query));
    const window: ListWindow = new Map(page.rows.map((row) => [keyText(rowKey(projection, row)), row]));
    const { window: before, written } = list;
    list.window = window;
    list.written = new Set();
    list.state = 'current';
    list.failures = 0;
    const difference = before && windowDifference(projection, before, window, written);
    if (!before || !difference) return;
    const update = withPlaces({ position, ...difference }, projection, before, window);
    const change = { from: before, to: window, written, update };
    for (const watcher of list.watchers) {
      if (!awaiting.has(watcher)) watcher.receiveChange(change);
    }
  }

  function readAllAgain(): void {
    for (const list of lists.values()) {
      list.window = undefined;
      list.state = 'stale';
      list.written = new Set();
      for (const watcher of list.watchers) awaiting.add(watcher);
    }
  }

  return {
    add(watcher) {
      const id = listId(watcher.query);
      const list = lists.get(id) ?? createList(id, watcher.query);
      lists.set(id, list);
      list.watchers.add(watcher);
      awaiting.add(watcher);
      size++;
    },
    remove(watcher) {
      const list = lists.get(listId(watcher.query));
      if (!list?.watchers.delete(watcher)) return;
      size--;
      awaiting.delete(watcher);
      if (list.watchers.size === 0) lists.delete(list.id);
    },
    readAllAgain,
    historyChanged() {
      for (const list of lists.values()) for (const watcher of list.watchers) watcher.historyChanged();
      readAllAgain();
    },
    get size() {
      return size;
    },
    get awaiting() {
      return awaiting.size > 0 || [...lists.values()].some((list) => list.state === 'stale');
    },
    note(changed) {
      if (changed.size === 0) return;
      for (const list of lists.values()) {
        for (const text of keysInBoth(changed, list.window)) list.written.add(text);
        if (list.written.size > 0) list.state = 'stale';
        else if (list.state === 'current') list.state = 'undecided';
      }
    },
    async serve(reads, changed, position) {
      await decide(reads, changed);
      for (const list of [...lists.values()]) {
        if (list.state !== 'stale' || list.notBefore > performance.now()) continue;
        try {
          await read(reads, list, position);
        } catch (error) {
          // If the server refuses to read one list (it takes too long), its retries must not block the others.
          list.failures++;
          list.notBefore = performance.now() + Math.min(100 * 2 ** list.failures, 30_000);
          if (isLargeAnswer(error)) for (const watcher of [...list.watchers]) watcher.fail(error);
          throw error;
        }
      }
      for (const watcher of [...awaiting]) {
        const list = lists.get(listId(watcher.query));
        if (!list?.window || list.state !== 'current' || watcher.floor > position) continue;
        awaiting.delete(watcher);
        watcher.receiveWindow(list.window, position);
      }
    },
  };
}

function createList(id: string, query: LiveListQuery): LiveList {
  return {
    id,
    query,
    watchers: new Set(),
    window: undefined,
    state: 'stale',
    written: new Set(),
    failures: 0,
    notBefore: 0,
  };
}

/** Returns the difference between two windows; undefined if there is none. `written`: keys whose rows were written meanwhile. */
export function windowDifference(
  projection: Projection,
  from: ListWindow,
  to: ListWindow,
  written: ReadonlySet<string>,
): Omit<LiveListUpdate, 'position'> | undefined {
  const entered: Row[] = [];
  const changed: Row[] = [];
  for (const [text, row] of to) {
    if (!from.has(text)) entered.push(row);
    else if (written.has(text)) changed.push(row);
  }
  const left = [...from].filter(([text]) => !to.has(text)).map(([, row]) => rowKey(projection, row));
  if (entered.length + changed.length + left.length === 0) return undefined;
  return { snapshot: null, entered, changed, left };
}

function keysInBoth(changed: ReadonlyMap<string, RowKey>, window: ListWindow = new Map()): string[] {
  const [fewer, more] = changed.size < window.size ? [changed, window] : [window, changed];
  return [...fewer.keys()].filter((text) => more.has(text));
}

const ids = new WeakMap<LiveListQuery, string>();

/** Returns equal ids for equal lists. */
function listId(query: LiveListQuery): string {
  const known = ids.get(query);
  if (known !== undefined) return known;
  const { where, orderBy, first, columns } = query;
  const id = JSON.stringify([where, orderBy, first, [...new Set(columns)].sort()], (_, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  ids.set(query, id);
  return id;
}

/** Adds the places to an update from one window to another. They are computed at most once, and only if a client selects them. */
export function withPlaces(
  update: LiveListUpdate,
  projection: Projection,
  from: ListWindow,
  to: ListWindow,
): LiveListUpdate {
  let places: readonly ListPlace[] | undefined;
  return Object.defineProperty(update, 'places', {
    get() {
      places ??= placesOf(projection, from, to);
      return places;
    },
  });
}

function placesOf(projection: Projection, from: ListWindow, to: ListWindow): ListPlace[] {
  const before = new Map([...from.keys()].map((text, index) => [text, index]));
  const texts = [...to.keys()];
  const staying = longestRising(texts.map((text) => before.get(text)));
  const places: ListPlace[] = [];
  let after: RowKey | null = null;
  for (const [index, row] of [...to.values()].entries()) {
    const key = rowKey(projection, row);
    // The row before it stays, or has its place already.
    if (!staying.has(index)) places.push({ key, after });
    after = key;
  }
  return places;
}

/** The indexes of a longest rising subsequence, by patience sorting: the most rows that need not move. */
function longestRising(values: readonly (number | undefined)[]): Set<number> {
  /** For each length, the index of the lowest value that ends a subsequence of it. */
  const ends: number[] = [];
  const previous: (number | undefined)[] = [];
  for (const [index, value] of values.entries()) {
    if (value === undefined) continue;
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((values[ends[middle] ?? 0] ?? 0) < value) low = middle + 1;
      else high = middle;
    }
    previous[index] = ends[low - 1];
    ends[low] = index;
  }
  const rising = new Set<number>();
  for (let index = ends.at(-1); index !== undefined; index = previous[index]) rising.add(index);
  return rising;
}
