import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import type { Row } from '../../projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { isLargeAnswer } from '../../store/postgres/database-errors.ts';
import { findByKeys } from '../../store/queries/row-queries.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { canonicalKey } from '../../store/tables/row-values.ts';

/** Look-ups by key that share statements. Nothing is cached: each look-up sees the database at the time of its statement. */
export interface KeyLookups {
  find(
    projection: Projection,
    keys: readonly RowKey[],
    columns: readonly string[],
    where: RowFilter | null,
    /** The columns that identify a row here. @default the key's columns */
    by?: readonly string[],
  ): Promise<readonly (Row | null)[]>;
}

export interface KeyLookupsOptions {
  readonly db: Queryable;
  readonly readSchema: string;
  /**
   * When look-ups are sent. `turn`: at the end of this turn of the event loop, so requests that arrived together share a
   * statement. `operation`: as soon as all resolvers of one operation have requested theirs.
   */
  readonly send: 'turn' | 'operation';
}

type Loader = DataLoader<RowKey, Row | null>;

// A loader holds nothing between statements, so evicting one costs only a longer statement.
const maxLoaders = 500;
// The largest array of one statement. A page has no more rows.
const maxKeys = 1000;

export function createKeyLookups({ db, readSchema, send }: KeyLookupsOptions): KeyLookups {
  const loaders = new LRUCache<string, { readonly projection: Projection; readonly loader: Loader }>({
    max: maxLoaders,
  });

  function loaderOf(
    projection: Projection,
    columns: readonly string[],
    where: RowFilter | null,
    by: readonly string[],
  ): Loader {
    const condition = where === null ? '' : keyText([where]);
    const name = by === projection.keyColumns ? '' : by.join(' ');
    const id = `${projection.tableName} ${name} ${[...new Set(columns)].sort().join(' ')} ${condition}`;
    const known = loaders.get(id);
    if (known?.projection === projection) return known.loader;
    const loader: Loader = new DataLoader((keys) => findByKeys(db, readSchema, projection, keys, columns, where, by), {
      cache: false,
      maxBatchSize: maxKeys,
      ...(send === 'turn' ? { batchScheduleFn: (callback: () => void) => void setImmediate(callback) } : {}),
    });
    loaders.set(id, { projection, loader });
    return loader;
  }

  return {
    async find(projection, keys, columns, where, by = projection.keyColumns) {
      // Check the keys before they are batched: one client's invalid key must not fail the look-ups of others.
      const canonical = keys.map((key) => canonicalKey(projection, key, by));
      const loader = loaderOf(projection, columns, where, by);
      return Promise.all(canonical.map((key) => loader.load(key))).catch((error: unknown) => {
        if (!isLargeAnswer(error)) throw error;
        return findByKeys(db, readSchema, projection, canonical, columns, where, by); // it may be too large because of others'
      });
    },
  };
}
