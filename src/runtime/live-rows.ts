import type { GlobalPosition } from '../events/global-position.ts';
import { keyText, type Projection, type RowKey } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import { findByKeys } from '../store/row-queries.ts';
import type { Queryable } from '../store/statement.ts';

/** Somebody who watches one row. */
export interface RowWatcher {
  readonly key: RowKey;
  readonly columns: readonly string[];
  /** Its next state must not be older than this. */
  readonly floor: GlobalPosition;
  /** `changed`: the row was written. Otherwise it was only read again, and may be what the watcher knows already. */
  receive(row: Row | null, position: GlobalPosition, changed: boolean): void;
}

/** All watchers of rows of one version. */
export interface LiveRows {
  /** The watcher gets the current state in the next round. */
  add(watcher: RowWatcher): void;
  remove(watcher: RowWatcher): void;
  /** Has all of them get the current state in the next round: what changed is not known. */
  readAllAgain(): void;
  readonly size: number;
  readonly awaiting: boolean;
  /** Serves all of them with one statement, or none where nothing that they watch was changed. */
  serve(reads: Queryable, changed: ReadonlyMap<string, RowKey>, position: GlobalPosition): Promise<void>;
}

interface WatchedRow {
  readonly text: string;
  readonly key: RowKey;
  readonly watchers: Set<RowWatcher>;
}

export function createLiveRows(projection: Projection, readSchema: string): LiveRows {
  const watched = new Map<string, WatchedRow>();
  const watchers = new Set<RowWatcher>();
  const awaiting = new Set<RowWatcher>();

  /** The rows to read, and who gets each. */
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
    get size() {
      return watchers.size;
    },
    get awaiting() {
      return awaiting.size > 0;
    },
    async serve(reads, changed, position) {
      const rows = [...due(changed, position)].filter(([, getting]) => getting.length > 0);
      if (rows.length === 0) return;
      const columns = new Set(rows.flatMap(([, getting]) => getting.flatMap((watcher) => watcher.columns)));
      const keys = rows.map(([row]) => row.key);
      const found = await findByKeys(reads, readSchema, projection, keys, [...columns]);
      for (const [index, [{ text }, getting]] of rows.entries()) {
        const parts = createParts(projection, found[index] ?? null);
        for (const watcher of getting) {
          if (!watchers.has(watcher)) continue; // left while the statement ran
          const first = awaiting.delete(watcher);
          watcher.receive(parts(watcher.columns), position, changed.has(text) && !first);
        }
      }
    },
  };
}

/** The row with the columns that a watcher asked for. Those who ask for the same get the same object. */
function createParts(projection: Projection, row: Row | null): (columns: readonly string[]) => Row | null {
  const parts = new Map<string, Row>();
  return (columns) => {
    if (row === null) return null;
    const names = [...new Set([...columns, ...projection.keyColumns])].sort();
    const id = names.join(' ');
    const part = parts.get(id) ?? Object.fromEntries(names.map((name) => [name, row[name]]));
    parts.set(id, part);
    return part;
  };
}
