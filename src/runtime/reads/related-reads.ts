import DataLoader from 'dataloader';
import { RefoldError } from '../../errors.ts';
import { keyText } from '../../projections/projection/projection.ts';
import type { RowReads } from '../../schema/contract/operation-context.ts';
import { countRelatedRows, findRelatedPages } from '../../store/queries/related-rows.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** Reads of relations that share a statement: all reads that the resolvers of one level request. */
export interface RelatedReads {
  readonly page: RowReads['findRelated'];
  readonly count: RowReads['countRelated'];
}

// A response of this many rows has some tens of megabytes. Nested lists multiply: each page may be within its limit while all together are too many.
const maxRows = 100_000;

/** Creates the reads of one operation: a loader for each relation and its arguments. */
export function createRelatedReads(db: Queryable, readSchema: string): RelatedReads {
  const loaders = new Map<string, DataLoader<unknown, never>>();

  function loaderOf<T>(id: string, load: (values: readonly unknown[]) => Promise<readonly T[]>) {
    const known = loaders.get(id);
    const loader = known ?? (new DataLoader(load, { cache: false }) as DataLoader<unknown, never>); // found again by the same id
    loaders.set(id, loader);
    return loader as DataLoader<unknown, T>;
  }

  return {
    page(projection, column, value, query) {
      const id = keyText(['page', projection.tableName, column, query]);
      return loaderOf(id, async (values) => {
        refuseTooMany(values.length, query.limit);
        return findRelatedPages(db, readSchema, projection, column, values, query);
      }).load(value);
    },
    count(projection, column, value, where, upTo = null) {
      const id = keyText(['count', projection.tableName, column, where, upTo]);
      return loaderOf(id, (values) => countRelatedRows(db, readSchema, projection, column, values, where, upTo)).load(
        value,
      );
    },
  };
}

function refuseTooMany(parents: number, limit: number): void {
  if (parents * limit > maxRows)
    throw new RefoldError(
      'QUERY_TOO_COMPLEX',
      `${parents} lists of up to ${limit} rows each may be ${parents * limit} rows; ${maxRows} are the most. Ask for smaller pages.`,
    );
}
