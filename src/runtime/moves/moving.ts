import type { Projection } from '../../projections/projection/projection.ts';
import type { ReadStore } from '../../store/read-store.ts';
import type { TransitionReason } from '../versions/expect-version.ts';

/** A version that is to move, and where its rows are. */
export interface Moving {
  readonly projection: Projection;
  readonly from: ReadStore;
}

export interface MoveOptions {
  readonly to: ReadStore;
  readonly readSchema: string;
  readonly step: TransitionReason;
}
