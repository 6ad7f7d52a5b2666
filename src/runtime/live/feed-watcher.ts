import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import type { ChangeCursor } from '../../projections/queries/change-cursor.ts';
import type { ChangeFeedQuery, LagReason, RowChange } from '../../schema/contract/change-feed.ts';
import type { ChangesKept } from '../../store/queries/change-feed.ts';

/** A watcher's request for something that is not at the head: to begin, a chunk of all rows, or a chunk of changes. */
export type FeedRequest =
  /** `lagged`: why there is no cursor to resume from, if that is already known. */
  | { readonly kind: 'begin'; readonly since: ChangeCursor | null; readonly lagged: LagReason | null }
  | { readonly kind: 'rows'; readonly after: RowKey; readonly from: PositionToken }
  | { readonly kind: 'changes'; readonly after: GlobalPosition };

/** A chunk of all rows in their current state. */
export interface RowsPart {
  readonly changes: readonly RowChange[];
  /** The position of the snapshot. Changes after it complete it. */
  readonly from: PositionToken;
  /** The last key, if there are more rows. */
  readonly after: RowKey | null;
}

/** Changes up to a position. */
export interface ChangesPart {
  readonly changes: readonly RowChange[];
  readonly at: PositionToken;
  /** False: from here on the watcher receives the changes of each poll. */
  readonly more: boolean;
}

/** How far one poll delivers changes. */
export interface PollEnd {
  /** After the poll, all changes up to here are delivered, and no new one can appear. */
  readonly at: PositionToken;
  /** Partitions that are ahead of `at` have delivered changes up to here. Changes above are delivered by a later poll. */
  readonly upTo: GlobalPosition;
}

export interface FeedBeginning extends PollEnd {
  /** The first chunk of all rows, if it wants them. */
  readonly part: RowsPart | null;
}

/** What a watcher follows. */
export type FeedQuery = Pick<ChangeFeedQuery, 'where' | 'columns' | 'snapshot'>;

/** A subscription to the changes of one version. */
export interface FeedWatcher {
  readonly query: FeedQuery;
  /** Whether it receives the changes of each poll. */
  readonly atHead: boolean;
  /** Whether it has a pending request and room for the result. */
  readonly wants: boolean;
  /** Returns its request for a poll at a position. */
  request(position: GlobalPosition): FeedRequest | null;
  /** Starts over, because its cursor is missing or invalid. */
  begin(lagged: LagReason | null, kept: ChangesKept, from: FeedBeginning): void;
  /** Resumes from its cursor: the changes after it follow. */
  resume(kept: ChangesKept): void;
  receiveRows(part: RowsPart): void;
  receiveChanges(part: ChangesPart): void;
  /** It has missed the changes of a poll, and must request them. */
  fallBehind(): void;
  /** Its request could not be served for now. */
  failed(): void;
  /** What it wants has more bytes than an answer may have. */
  fail(error: unknown): void;
  /** Events are gone that led to what it has delivered. */
  historyChanged(): void;
}
