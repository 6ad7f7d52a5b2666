import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import { type ChangeCursor, cursorText } from '../../projections/queries/change-cursor.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';

/** A subscription to changes: which rows, and since when. */
export interface ChangeFeedQuery {
  readonly where: RowFilter | null;
  readonly columns: readonly string[];
  /** What the subscriber has already; null for nothing. */
  readonly since: ChangeCursor | null;
  /** Whether to send all rows first if there is nothing to continue from. */
  readonly snapshot: boolean;
}

/** A change of a row; only the latest if it changed several times. */
export interface RowChange {
  readonly operation: 'UPSERT' | 'DELETE';
  readonly key: RowKey;
  /** The current row; null if it does not exist, or does not match the subscription. */
  readonly row: Row | null;
  /** The log position at which the row changed. */
  readonly position: GlobalPosition;
}

/**
 * Why a subscriber cannot continue from its cursor.
 * - `EXPIRED`: changes since then are no longer kept.
 * - `REPLACED`: another version is active, or the rows were rebuilt.
 * - `TOO_MANY`: too many rows changed at once to send each of them.
 * - `AHEAD`: the read model has not reached the cursor.
 * - `HISTORY_CHANGED`: the database lost events that led to it.
 */
export const lagReasons = ['EXPIRED', 'REPLACED', 'TOO_MANY', 'AHEAD', 'HISTORY_CHANGED'] as const;
export type LagReason = (typeof lagReasons)[number];

/** One message of a change feed. A subscriber that applies all messages in order has the current rows. */
export interface ChangeFeedUpdate {
  readonly position: GlobalPosition;
  /** The cursor to continue after this message; null within a snapshot of several messages. */
  readonly cursor: ChangeCursor | null;
  /** Whether the subscriber has to discard what it has. */
  readonly reset: boolean;
  /** The reason for the reset, if the subscriber had a cursor. */
  readonly lagged: LagReason | null;
  /** Ordered by position. */
  readonly changes: readonly RowChange[];
}

/** Returns the event id with which a subscriber resumes after this event. Only change feeds have one. */
export function eventIdOf(event: unknown): string | undefined {
  if (typeof event !== 'object' || event === null || !('lagged' in event && 'cursor' in event)) return undefined;
  const { cursor } = event as ChangeFeedUpdate; // only change feed updates have both
  return cursor ? cursorText(cursor) : undefined;
}
