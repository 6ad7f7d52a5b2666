import type { RowMemory } from '../projections/fold.ts';
import type { RowKey } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';

interface Entry {
  readonly key: RowKey;
  row: Row | null;
  dirty: boolean;
}

/** Rows kept between batches, with what has changed since they were last written. */
export interface RowCache extends RowMemory {
  readonly changed: number;
  /** The keys that memory does not know, of those given. */
  missing(keys: ReadonlyMap<string, RowKey>): RowKey[];
  /** A row as the table has it; null where it has none. */
  learn(text: string, key: RowKey, row: Row | null): void;
  /** What has changed since the last {@link written}: rows to write, keys to remove. */
  changes(): { upserted: Row[]; upsertedKeys: RowKey[]; deletedKeys: RowKey[] };
  /** Everything is in the table now; forgets the rows used longest ago where there are more than `keep`. */
  written(keep: number): void;
}

/** `complete`: the table is known to be empty, so what memory does not know does not exist. */
export function createRowCache(complete: boolean): RowCache {
  const entries = new Map<string, Entry>();
  let knowsAll = complete;
  let dirty = new Map<string, Entry>();

  return {
    get changed() {
      return dirty.size;
    },
    get(text) {
      const entry = entries.get(text);
      return entry ? entry.row : knowsAll ? null : undefined;
    },
    set(text, key, row) {
      const entry = entries.get(text);
      if (entry) entry.row = row;
      const changed = entry ?? { key, row, dirty: false };
      if (!entry) entries.set(text, changed);
      if (changed.dirty) return;
      changed.dirty = true;
      dirty.set(text, changed);
    },
    missing: (keys) => (knowsAll ? [] : [...keys].filter(([text]) => !entries.has(text)).map(([, key]) => key)),
    learn: (text, key, row) => void entries.set(text, { key, row, dirty: false }),
    changes() {
      const upserted: Row[] = [];
      const upsertedKeys: RowKey[] = [];
      const deletedKeys: RowKey[] = [];
      for (const { key, row } of dirty.values()) {
        if (row === null) deletedKeys.push(key);
        else {
          upserted.push(row);
          upsertedKeys.push(key);
        }
      }
      return { upserted, upsertedKeys, deletedKeys };
    },
    written(keep) {
      // What was used last goes to the end, so that the map's own order tells which rows were used longest ago.
      for (const [text, entry] of dirty) {
        entry.dirty = false;
        entries.delete(text);
        entries.set(text, entry);
      }
      dirty = new Map();
      let surplus = entries.size - keep;
      if (surplus <= 0) return;
      knowsAll = false;
      for (const text of entries.keys()) {
        if (surplus-- <= 0) break;
        entries.delete(text);
      }
    },
  };
}
