import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { ReadPosition } from '../../projections/queries/change-cursor.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import type { ReadModels, RowReads } from '../../schema/contract/operation-context.ts';

/** The reads of one operation. Close it after the operation's response. */
export interface OperationReadModels extends ReadModels {
  /**
   * Whether the response is incomplete because a replica or a table of the operation's snapshot is gone. A query must be executed again, with new
   * reads of the primary.
   * @default false
   */
  readonly lost?: boolean;
  /** Returns the position of two versions in the operation's snapshot; null if they are at different positions, or there is no snapshot. */
  samePosition(a: Projection, b: Projection): Promise<GlobalPosition | null>;
  /**
   * Returns the positions of the rows read so far, if the reads were opened with `positions`; undefined if one position is unknown because the
   * rows have just moved to another table.
   */
  readPositions(): Promise<readonly ReadPosition[] | undefined>;
  /** Returns the snapshot's connection to the pool after running reads, and ends waits. */
  close(): Promise<void>;
}

/** The reads of an operation in one database whose position can be checked. */
export interface NearReads extends OperationReadModels {
  /** Whether the reads see a version up to the position. */
  holds(projection: Projection, position: GlobalPosition): Promise<boolean>;
}

/** What a read of rows asks for. */
export interface AskedRows {
  /** The version of the rows, and those of rows that its filter follows relations to. */
  readonly versions: readonly [Projection, ...Projection[]];
  /** Null: the rows are not known by key. */
  readonly keys: readonly RowKey[] | null;
}

/** Wraps all reads of rows in the same way. Each passes on all of its arguments, so none can be forgotten. */
export function wrapReads(
  reads: RowReads,
  around: <Found>(asked: AskedRows, read: () => Promise<Found>) => Promise<Found>,
): RowReads {
  const asked = (
    projection: Projection,
    where: RowFilter | null = null,
    keys: AskedRows['keys'] = null,
  ): AskedRows => ({
    versions: [projection, ...versionsIn(where)],
    keys,
  });
  return {
    findByKeys(...given) {
      const [projection, keys, , where] = given;
      return around(asked(projection, where, keys), () => reads.findByKeys(...given));
    },
    findByUnique(...given) {
      const [projection, , , , where] = given;
      return around(asked(projection, where), () => reads.findByUnique(...given));
    },
    findPage(...given) {
      const [projection, { where }] = given;
      return around(asked(projection, where), () => reads.findPage(...given));
    },
    count(...given) {
      const [projection, where] = given;
      return around(asked(projection, where), () => reads.count(...given));
    },
    findRelated(...given) {
      const [projection, , , { where }] = given;
      return around(asked(projection, where), () => reads.findRelated(...given));
    },
    countRelated(...given) {
      const [projection, , , where] = given;
      return around(asked(projection, where), () => reads.countRelated(...given));
    },
    aggregate(...given) {
      const [projection, { where }] = given;
      return around(asked(projection, where), () => reads.aggregate(...given));
    },
  };
}

function versionsIn(where: RowFilter | null): Projection[] {
  return relatedFilters(where).flatMap(({ target, filter }) => [target.projection, ...versionsIn(filter)]);
}
