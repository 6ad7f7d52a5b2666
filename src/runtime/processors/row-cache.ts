import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowKey } from '../../projections/declaration/projection.ts';
import type { FoldStep, RowMemory } from '../../projections/fold/fold.ts';
import type { UniqueClaims } from '../../projections/fold/unique-claims.ts';
import type { ChangedRow } from '../../store/tables/write-rows.ts';
import { createKeyFilter } from './key-filter.ts';

interface Entry {
  readonly text: string;
  readonly key: RowKey;
  row: Row | null;
  dirty: boolean;
  /** Whether the table has a row of this key, or may have one. */
  stored: boolean;
  /** How often all had been written before it came to the end of memory. */
  placed: number;
}

/** What has changed since the rows were last written. */
export interface RowChanges {
  /** Of keys that the table has no row of. */
  readonly inserted: Row[];
  readonly updated: Row[];
  /** Of both. */
  readonly upsertedKeys: RowKey[];
  readonly deletedKeys: RowKey[];
}

/** Rows kept between batches, with what has changed since they were last written. */
export interface RowCache extends RowMemory {
  readonly changed: number;
  /** The keys of these steps that memory does not know. */
  missing(steps: readonly FoldStep[]): RowKey[];
  /** A row as the table has it; null where it has none. */
  learn(text: string, key: RowKey, row: Row | null): void;
  /** What is to be written. */
  changes(): RowChanges;
  /** The same row by row, in the order of their first change. */
  changedRows(): readonly ChangedRow[];
  /** Forgets what has changed, of these rows where they are named: the table has them as they were. */
  revert(texts?: ReadonlySet<string>): void;
  /** Everything is in the table now; forgets the rows used longest ago where there are more than `keep`. */
  written(keep: number): void;
}

/**
 * `complete`: the table is known to be empty, so what memory does not know does not exist. Of the rows that it has forgotten since, it
 * remembers as much as it takes to tell the keys that are new: a log that makes a row of each event is folded without one look-up.
 * `claims` is told what changes.
 */
export function createRowCache(complete: boolean, claims?: UniqueClaims): RowCache {
  const entries = new Map<string, Entry>();
  const forgotten = complete ? createKeyFilter() : undefined;
  const exists = (text: string) => forgotten?.mayHold(text) ?? true;
  let knowsAll = complete;
  let dirty: Entry[] = [];
  let writes = 0;
  // What was looked up last: the fold sets the row that it has just got.
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
    lastText = undefined;
  }

  function forget({ text, stored }: Entry): void {
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
    get(text) {
      lookUp(text);
      return lastEntry ? lastEntry.row : lastExists ? undefined : null;
    },
    set(text, key, row) {
      if (text !== lastText) lookUp(text);
      let entry = lastEntry;
      claims?.changed(text, entry?.row ?? null, row);
      if (entry) entry.row = row;
      else {
        entry = { text, key, row, dirty: false, stored: lastExists, placed: writes };
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
    learn: (text, key, row) => place({ text, key, row, dirty: false, stored: row !== null, placed: writes }),
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
      // What was used last goes to the end, so that the map's own order tells which rows were used longest ago. What came since the last
      // time is there already.
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
      let surplus = entries.size - keep;
      for (const entry of entries.values()) {
        if (surplus-- <= 0) break;
        forget(entry);
      }
    },
  };
}
