import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ReadPosition } from '../../projections/queries/change-cursor.ts';
import type { ReadModels } from '../../schema/contract/operation-context.ts';

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
