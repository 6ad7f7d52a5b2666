import type { Projection } from '../../projections/projection/projection.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import type { ReadModels, RowReads } from '../../schema/contract/operation-context.ts';

/**
 * Wraps reads and records the versions whose rows they read. The history of a row is folded from the log, so it records none. Each read passes on
 * all of its arguments, so none can be forgotten.
 */
export function trackedReads(reads: ReadModels, note: (projection: Projection) => void): ReadModels {
  function look(projection: Projection, where: RowFilter | null = null): void {
    note(projection);
    for (const { target, filter } of relatedFilters(where)) look(target.projection, filter);
  }
  const noted: RowReads = {
    findByKeys(...given) {
      const [projection, , , where] = given;
      look(projection, where);
      return reads.findByKeys(...given);
    },
    findByUnique(...given) {
      const [projection, , , , where] = given;
      look(projection, where);
      return reads.findByUnique(...given);
    },
    findPage(...given) {
      const [projection, { where }] = given;
      look(projection, where);
      return reads.findPage(...given);
    },
    count(...given) {
      const [projection, where] = given;
      look(projection, where);
      return reads.count(...given);
    },
    findRelated(...given) {
      const [projection, , , { where }] = given;
      look(projection, where);
      return reads.findRelated(...given);
    },
    countRelated(...given) {
      const [projection, , , where] = given;
      look(projection, where);
      return reads.countRelated(...given);
    },
    aggregate(...given) {
      const [projection, { where }] = given;
      look(projection, where);
      return reads.aggregate(...given);
    },
  };
  return { ...reads, ...noted };
}
