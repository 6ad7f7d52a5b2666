import type { Projection } from '../../projections/declaration/projection.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import type { ReadModels } from '../../schema/contract/operation-context.ts';

/** The same reads, which note the versions whose rows they look at. The past of a row is folded from the log, and no such read. */
export function notedReads(reads: ReadModels, note: (projection: Projection) => void): ReadModels {
  function look(projection: Projection, where: RowFilter | null = null): void {
    note(projection);
    for (const { target, filter } of relatedFilters(where)) look(target.projection, filter);
  }
  return {
    findByKeys(projection, keys, columns, where) {
      look(projection, where);
      return reads.findByKeys(projection, keys, columns, where);
    },
    findByUnique(projection, by, values, columns, where) {
      look(projection, where);
      return reads.findByUnique(projection, by, values, columns, where);
    },
    findPage(projection, query) {
      look(projection, query.where);
      return reads.findPage(projection, query);
    },
    count(projection, where, upTo) {
      look(projection, where);
      return reads.count(projection, where, upTo);
    },
    findRelated(projection, column, value, query) {
      look(projection, query.where);
      return reads.findRelated(projection, column, value, query);
    },
    countRelated(projection, column, value, where, upTo) {
      look(projection, where);
      return reads.countRelated(projection, column, value, where, upTo);
    },
    aggregate(projection, query) {
      look(projection, query.where);
      return reads.aggregate(projection, query);
    },
    history: (projection, key, columns) => reads.history(projection, key, columns),
    waitFor: (projection, position) => reads.waitFor(projection, position),
    progress: (projection) => reads.progress(projection),
  };
}
