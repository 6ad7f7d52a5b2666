import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowKey } from '../../projections/declaration/projection.ts';
import { type ChangeCursor, cursorText } from '../../projections/queries/change-cursor.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';

/** Whose changes a subscriber wants, and from where on. */
export interface ChangeFeedQuery {
  readonly where: RowFilter | null;
  readonly columns: readonly string[];
  /** What the subscriber knows already; null: nothing. */
  readonly since: ChangeCursor | null;
  /** Whether all rows come first where there is nothing to go on from. */
  readonly snapshot: boolean;
}

/** What became of a row; the latest, where it changed several times. */
export interface RowChange {
  readonly operation: 'UPSERT' | 'DELETE';
  readonly key: RowKey;
  /** As it is now; null where it is not there, or not of those asked for. */
  readonly row: Row | null;
  /** Up to where the log was folded when it changed. */
  readonly position: GlobalPosition;
}

/**
 * Why a subscriber can't go on from what it knows. `EXPIRED`: changes since then are not kept any more. `REPLACED`: another version answers,
 * or the rows were built anew. `TOO_MANY`: so much changed at once that it is not told row by row. `AHEAD`: the read model is not there yet.
 * `HISTORY_CHANGED`: the database lost events that led to it.
 */
export const lagReasons = ['EXPIRED', 'REPLACED', 'TOO_MANY', 'AHEAD', 'HISTORY_CHANGED'] as const;
export type LagReason = (typeof lagReasons)[number];

/** One message of a change feed. Whoever applies all of them in their order knows the rows. */
export interface ChangeFeedUpdate {
  readonly position: GlobalPosition;
  /** What a subscriber goes on from who has applied this message; null within a snapshot of several messages. */
  readonly cursor: ChangeCursor | null;
  /** Whatever the subscriber knew before is to be forgotten. */
  readonly reset: boolean;
  /** Why it is, where the subscriber knew something. */
  readonly lagged: LagReason | null;
  /** In the order of their positions. */
  readonly changes: readonly RowChange[];
}

/** Of what a subscriber is given: what it goes on from who has got it. Only change feeds have that. */
export function eventIdOf(event: unknown): string | undefined {
  if (typeof event !== 'object' || event === null || !('lagged' in event && 'cursor' in event)) return undefined;
  const { cursor } = event as ChangeFeedUpdate; // nothing else has both
  return cursor ? cursorText(cursor) : undefined;
}
