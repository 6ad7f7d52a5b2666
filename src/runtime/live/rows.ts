import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { LiveRow } from '../../schema/contract/operation-context.ts';
import { isLargeAnswer } from '../../store/postgres/database-errors.ts';
import { findByKeys } from '../../store/queries/row-queries.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** A subscription to one row. */
export interface RowWatcher {
  readonly key: RowKey;
  readonly columns: readonly string[];
  /** Its next state must not be older than this. */
  readonly floor: GlobalPosition;
  /**
   * Receives a state; all watchers of one round get the same object. `changed`: the row was written. Otherwise it was only read again, and may
   * be what the watcher already has.
   */
  receive(state: LiveRow, changed: boolean): void;
  /** What it wants has more bytes than an answer may have. */
  fail(error: unknown): void;
  /** Events are gone that led to what it has delivered. */
  historyChanged(): void;
}

/** All watchers of rows of one version. */
export interface LiveRows {
  /** The watcher receives the current state in the next round. */
  add(watcher: RowWatcher): void;
  remove(watcher: RowWatcher): void;
  /** Delivers the current state to all watchers in the next round, because the changes are unknown. */
  readAllAgain(): void;
  /** Like {@link LiveRows.readAllAgain}, because events are gone. */
  historyChanged(): void;
  readonly size: number;
  readonly awaiting: boolean;
  /** Reads rows that have probably changed before the changes are known; null if there are none. */
  readAhead(reads: Queryable): Promise<RowsAhead | null>;
  /**
   * Serves all watchers. Rows not read ahead in the same snapshot are read with one statement; no statement runs if no watched row
   * changed.
   */
  serve(
    reads: Queryable,
    changed: ReadonlyMap<string, RowKey>,
    position: GlobalPosition,
    ahead?: RowsAhead | null,
  ): Promise<void>;
}

/** Some columns of rows, by the text of their keys; null for a row that does not exist. */
export interface RowsAhead {
  readonly rows: ReadonlyMap<string, Row | null>;
  readonly columns: ReadonlySet<string>;
}

interface WatchedRow {
  readonly text: string;
  readonly key: RowKey;
  readonly watchers: Set<RowWatcher>;
}

// So few rows cost nothing measurable beside the round trip.
const maxAhead = 10;

export function createLiveRows(projection: Projection, readSchema: string): LiveRows {
  const watched = new Map<string, WatchedRow>();
  const watchers = new Set<RowWatcher>();
  const awaiting = new Set<RowWatcher>();
  // Rows that changed in the last round, because they may change again. Rows that did not change are not read ahead.
  let likely: { readonly rows: readonly WatchedRow[]; readonly columns: ReadonlySet<string> } | undefined;

  /** The most rows that are read with one statement. */
  let portion = Infinity;

  async function read(reads: Queryable, rows: readonly WatchedRow[], columns: ReadonlySet<string>) {
    const found = new Map<string, Row | null>();
    for (let start = 0; start < rows.length; ) {
      const some = rows.slice(start, start + portion);
      const keys = some.map(({ key }) => key);
      const states = await findByKeys(reads, readSchema, projection, keys, [...columns]).catch((error: unknown) => {
        const smaller = smallerPortion(some.length, error);
        if (smaller === undefined) for (const watcher of some.flatMap((row) => [...row.watchers])) watcher.fail(error);
        else if (smaller < some.length) portion = smaller;
        throw error;
      });
      for (const [index, { text }] of some.entries()) found.set(text, states[index] ?? null);
      start += some.length;
    }
    return found;
  }

  /** Returns the rows to read, with the watchers of each. */
  function due(changed: ReadonlyMap<string, RowKey>, position: GlobalPosition): Map<WatchedRow, RowWatcher[]> {
    const rows = new Map<WatchedRow, RowWatcher[]>();
    const smaller = changed.size < watched.size ? changed : watched;
    for (const text of smaller.keys()) {
      const row = watched.get(text);
      if (row && changed.has(text))
        rows.set(
          row,
          [...row.watchers].filter((watcher) => !awaiting.has(watcher)),
        );
    }
    for (const watcher of awaiting) {
      const row = watched.get(keyText(watcher.key));
      if (!row || watcher.floor > position) continue;
      const getting = rows.get(row);
      if (getting) getting.push(watcher);
      else rows.set(row, [watcher]);
    }
    return rows;
  }

  return {
    add(watcher) {
      const text = keyText(watcher.key);
      const row = watched.get(text) ?? { text, key: watcher.key, watchers: new Set() };
      watched.set(text, row);
      row.watchers.add(watcher);
      watchers.add(watcher);
      awaiting.add(watcher);
    },
    remove(watcher) {
      const text = keyText(watcher.key);
      const row = watched.get(text);
      row?.watchers.delete(watcher);
      if (row?.watchers.size === 0) watched.delete(text);
      watchers.delete(watcher);
      awaiting.delete(watcher);
    },
    readAllAgain() {
      for (const watcher of watchers) awaiting.add(watcher);
    },
    historyChanged() {
      for (const watcher of watchers) {
        watcher.historyChanged();
        awaiting.add(watcher);
      }
    },
    get size() {
      return watchers.size;
    },
    get awaiting() {
      return awaiting.size > 0;
    },
    async readAhead(reads) {
      const { rows, columns } = likely ?? { rows: [], columns: new Set<string>() };
      likely = undefined; // if the read fails, the next round does not read ahead
      const still = rows.filter((row) => watched.get(row.text) === row);
      return still.length === 0 ? null : { rows: await read(reads, still, columns), columns };
    },
    async serve(reads, changed, position, ahead) {
      const rows = [...due(changed, position)].filter(([, getting]) => getting.length > 0);
      const written = rows.flatMap(([row]) => (changed.has(row.text) ? [row] : []));
      const asked = new Set(rows.flatMap(([, getting]) => getting.map((watcher) => watcher.columns)));
      const columns = new Set([...asked].flat());
      likely = written.length === 0 || written.length > maxAhead ? undefined : { rows: written, columns };
      if (rows.length === 0) return;
      const known = ahead && [...columns].every((name) => ahead.columns.has(name)) ? ahead.rows : undefined;
      const missing = rows.flatMap(([row]) => (known?.has(row.text) ? [] : [row]));
      const found = await read(reads, missing, columns);
      for (const [{ text }, getting] of rows) {
        const row = (known?.has(text) ? known : found).get(text) ?? null;
        const stateWith = createStates(projection, row, position);
        for (const watcher of getting) {
          if (!watchers.has(watcher)) continue; // left while the statement ran
          const first = awaiting.delete(watcher);
          watcher.receive(stateWith(watcher.columns), changed.has(text) && !first);
        }
      }
    },
  };
}

/** Returns a function that selects a watcher's columns from a row. Equal selections return the same object. */
function createStates(
  projection: Projection,
  row: Row | null,
  position: GlobalPosition,
): (columns: readonly string[]) => LiveRow {
  const none: LiveRow = { row: null, position };
  const byList = new Map<readonly string[], LiveRow>();
  const byNames = new Map<string, LiveRow>();
  return (columns) => {
    if (row === null) return none;
    const known = byList.get(columns); // subscriptions of one document share the list
    if (known) return known;
    const names = [...new Set([...columns, ...projection.keyColumns])].sort();
    const id = names.join(' ');
    const state = byNames.get(id) ?? { row: Object.fromEntries(names.map((name) => [name, row[name]])), position };
    byNames.set(id, state);
    byList.set(columns, state);
    return state;
  };
}

// So a thousand rows become one in four steps, within a second or two of the poll's backoff.
const divisor = 8;

/**
 * How many rows to ask for at once, after a statement failed for so many: fewer if they have too many bytes. Undefined if fewer would fail, too,
 * because of one row.
 */
export function smallerPortion(rows: number, error: unknown): number | undefined {
  if (!isLargeAnswer(error)) return rows;
  return rows > 1 ? Math.ceil(rows / divisor) : undefined;
}
