import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { ReadModels } from '../../schema/contract/operation-context.ts';
import type { ReadPosition } from './read-positions.ts';

/** The reads of one operation. Close it when the operation is answered. */
export interface OperationReadModels extends ReadModels {
  /** Whether the answer is of nothing whole, so that the operation is to be executed again without a replica. @default false */
  readonly lost?: boolean;
  /** Where two versions are in the operation's snapshot; null where they are apart, or it has none. */
  samePosition(a: Projection, b: Projection): Promise<GlobalPosition | null>;
  /**
   * Where the rows are that were read so far, if the reads were opened with `positions`; undefined where one of them can't be told,
   * since the rows have just moved to another table.
   */
  readPositions(): Promise<readonly ReadPosition[] | undefined>;
  /** Gives the snapshot's connection back after the reads that are running, and ends waits. */
  close(): Promise<void>;
}

/** The reads of an operation in one database, which can tell how far that is. */
export interface NearReads extends OperationReadModels {
  /** Whether what they see includes a version up to the position. */
  holds(projection: Projection, position: GlobalPosition): Promise<boolean>;
}
