import type { Row } from '../../projections/columns/row-codec.ts';
import type { FoldStep, RowMemory } from '../../projections/fold/fold.ts';
import type { UniqueClaims } from '../../projections/fold/unique-claims.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import type { ChangedRow } from '../../store/tables/write-rows.ts';
import { createBloomFilter } from './bloom-filter.ts';

interface Entry {
  readonly text: string;
  readonly key: RowKey;
  row: Row | null;
  /** The size of the row. */
  size: number;
  dirty: boolean;
  /** Whether the table has, or may have, a row with this key. */
  stored: boolean;
  /** The number of writes at the time when the entry was last moved to the end of the map. */
  placed: number;
}

/** The changes since the last write. */
export interface RowChanges {
  /** Rows whose keys are not in the table. */
  readonly inserted: Row[];
  readonly updated: Row[];
  /** The keys of inserted and updated rows. */
  readonly upsertedKeys: RowKey[];
  readonly deletedKeys: RowKey[];
}

/** Rows kept between batches, with the changes since the last write. */
export interface RowCache extends RowMemory {
  readonly changed: number;
  /** The size of all rows, about. */
  readonly bytes: number;
  /** Returns the keys of these steps that memory does not hold. */
  missing(steps: readonly FoldStep[]): RowKey[];
  /** Stores a row as read from the table; null if the table has none. */
  learn(text: string, key: RowKey, row: Row | null): void;
  /** Returns what must be written. */
  changes(): RowChanges;
  /** Returns the changes row by row, in the order of their first change. */
  changedRows(): readonly ChangedRow[];
  /** Discards the changes, of the given rows only if `texts` is set. The table still has the rows as they were before. */
  revert(texts?: ReadonlySet<string>): void;
  /** Marks everything as written. Evicts the least recently used rows beyond `keep` rows or bytes. */
  written(keep: { readonly rows: number; readonly bytes: number }): void;
}

/**
 * `complete`: the table is known to be empty, so a key that memory does not know does not exist. A Bloom filter remembers the evicted rows, so
 * new keys are still recognized: a log in which each event creates a row is folded without a single look-up.
 * `claims` receives each change. `sizeOf` measures rows.
 */
export function createRowCache(
  complete: boolean,
  claims?: UniqueClaims,
  sizeOf: (row: Row) => number = () => 0,
): RowCache {
  const entries = new Map<string, Entry>();
  const forgotten = complete ? createBloomFilter() : undefined;
  const exists = (text: string) => forgotten?.mayHold(text) ?? true;
  let knowsAll = complete;
  let dirty: Entry[] = [];
  let bytes = 0;
  let writes = 0;
  // The last look-up, because the fold sets the row that it has just read.
  let lastText: string | undefined;
  let lastEntry: Entry | undefined;
  let lastExists = false;

  function lookUp(text: string): void {
    lastText = text;
    lastEntry = entries.get(text);
    lastExists = lastEntry !== undefined || exists(text);
  }

  function place(entry: Entry): void {
    entries.set(entry.text, entry);
    bytes += entry.size;
    lastText = undefined;
  }

  function forget({ text, stored, size }: Entry): void {
    bytes -= size;
    if (stored) {
      forgotten?.add(text);
      knowsAll = false;
    }
    entries.delete(text);
  }

  return {
    get changed() {
      return dirty.length;
    },
    get bytes() {
      return bytes;
    },
    get(text) {
      lookUp(text);
      return lastEntry ? lastEntry.row : lastExists ? undefined : null;
    },
    set(text, key, row) {
      if (text !== lastText) lookUp(text);
      let entry = lastEntry;
      claims?.changed(text, entry?.row ?? null, row);
      const size = row ? sizeOf(row) : 0;
      if (entry) {
        bytes += size - entry.size;
        entry.row = row;
        entry.size = size;
      } else {
        entry = { text, key, row, size, dirty: false, stored: lastExists, placed: writes };
        place(entry);
      }
      if (entry.dirty) return;
      entry.dirty = true;
      dirty.push(entry);
    },
    missing(steps) {
      if (knowsAll) return [];
      const unknown = new Map<string, RowKey>();
      for (const { text, key } of steps) if (!entries.has(text) && exists(text)) unknown.set(text, key);
      return [...unknown.values()];
    },
    learn: (text, key, row) =>
      place({ text, key, row, size: row ? sizeOf(row) : 0, dirty: false, stored: row !== null, placed: writes }),
    changes() {
      const changes: RowChanges = { inserted: [], updated: [], upsertedKeys: [], deletedKeys: [] };
      for (const { key, row, stored } of dirty) {
        if (row === null) changes.deletedKeys.push(key);
        else {
          (stored ? changes.updated : changes.inserted).push(row);
          changes.upsertedKeys.push(key);
        }
      }
      return changes;
    },
    changedRows: () => dirty.map(({ key, row }) => ({ key, row })),
    revert(texts) {
      const kept: Entry[] = [];
      for (const entry of dirty) {
        if (texts && !texts.has(entry.text)) kept.push(entry);
        else forget(entry);
      }
      dirty = kept;
      lastText = undefined;
      claims?.clear();
    },
    written(keep) {
      // Move used entries to the end, so the map's own order is the order of last use. Entries placed since the last write are already there.
      for (const entry of dirty) {
        entry.dirty = false;
        entry.stored = entry.row !== null;
        if (entry.placed < writes) {
          entries.delete(entry.text);
          entries.set(entry.text, entry);
        }
        entry.placed = writes;
      }
      writes++;
      dirty = [];
      claims?.clear();
      lastText = undefined;
      let surplus = entries.size - keep.rows;
      for (const entry of entries.values()) {
        if (surplus-- <= 0 && bytes <= keep.bytes) break;
        forget(entry);
      }
    },
  };
}
