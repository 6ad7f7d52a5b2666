import type { GlobalPosition } from '../../events/global-position.ts';
import type { RowKey } from '../../projections/projection/projection.ts';

/** An answer includes everything up to a demanded position, but for this: a row that was left without an event. */
export interface HeldRow {
  readonly projection: string;
  readonly version: number;
  /** Null if the read has no key, such as that of a list, or if the event has none. */
  readonly key: RowKey | null;
  /** The position of an event that is missing; of a row that waits for a dead letter, the first one. */
  readonly position: GlobalPosition;
  readonly reason: 'DEAD_LETTER' | 'SKIPPED';
}

/** Which held rows an operation has read, and whether it refuses them. */
export interface HeldRows {
  readonly refuse: boolean;
  /** The positions of the events that its commands have written. */
  readonly written: Set<GlobalPosition>;
  readonly found: HeldRow[];
}
