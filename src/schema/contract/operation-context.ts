import type { Viewer } from '../../access.ts';
import type { Command } from '../../commands/define-command.ts';
import type { ExpectedVersion, RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/declaration/projection.ts';
import type { VersionMap, VersionProgress } from '../../projections/declaration/version-map.ts';
import type { AnswerQuery } from '../../projections/queries/answer-query.ts';
import type {
  AggregateQuery,
  AggregateRow,
  PageQuery,
  RowFilter,
  RowOrder,
  RowPage,
} from '../../projections/queries/row-query.ts';
import type { ChangeFeedQuery, ChangeFeedUpdate } from './change-feed.ts';

/**
 * What the resolvers of one operation work with. The schema declares it, the runtime and the store implement it, so that the schema
 * needs no database. One is made for each operation: its version map and its snapshot of the read tables stay the same to its end.
 */
export interface OperationContext {
  readonly versions: VersionMap;
  /** Who asks; `system` is the program itself. */
  readonly viewer: Viewer | 'system';
  readonly readModels: ReadModels;
  readonly commands: CommandExecutor;
  readonly live: LiveReadModels;
  /** The position that the client demands its answers to include (`@after`, header `refold-after`); null where it demands none. */
  readonly after: GlobalPosition | null;
  /** Throws RefoldError `HISTORY_CHANGED` where the log has other events by now than those that the client knows. @default never */
  checkToken?(token: PositionToken): Promise<void>;
  /** The id of the last event that the client was sent, where it comes back (header `Last-Event-ID`). */
  readonly lastEventId: string | null;
}

/** Reads of rows as they are now. A decorator of {@link ReadModels} spreads what it wraps and overrides all of these, which the compiler checks. */
export interface RowReads {
  /**
   * The rows of these keys, in their order; null where there is none, or `where` does not hold. Concurrent calls with the same `where`
   * share statements.
   */
  findByKeys(
    projection: Projection,
    keys: readonly RowKey[],
    columns: readonly string[],
    where?: RowFilter | null,
  ): Promise<readonly (Row | null)[]>;
  /** The row whose values in the columns of a unique index are these. Concurrent calls share statements as those by key do. */
  findByUnique(
    projection: Projection,
    by: readonly string[],
    values: RowKey,
    columns: readonly string[],
    where?: RowFilter | null,
  ): Promise<Row | null>;
  findPage(projection: Projection, query: PageQuery): Promise<RowPage>;
  /** `upTo`: counts no further than to this number. */
  count(projection: Projection, where: RowFilter | null, upTo?: number | null): Promise<number>;
  /** The page of the rows whose column has the value. Concurrent calls that differ in the value only share a statement. */
  findRelated(projection: Projection, column: string, value: unknown, query: PageQuery): Promise<RowPage>;
  /** As {@link findRelated}: how many they are, in all pages. */
  countRelated(
    projection: Projection,
    column: string,
    value: unknown,
    where: RowFilter | null,
    upTo?: number | null,
  ): Promise<number>;
  /** One row where there are no groupings. */
  aggregate(projection: Projection, query: AggregateQuery): Promise<readonly AggregateRow[]>;
}

/** Reads of one operation. All reads of one query see one snapshot of the database. */
export interface ReadModels extends RowReads {
  /**
   * Every state that the row has had, folded anew from its events; of a projection with `history`. `columns` are those that are shown.
   *
   * @throws RefoldError `QUERY_TOO_COMPLEX` where there are too many
   */
  history(projection: Projection, key: RowKey, columns: readonly string[]): Promise<readonly RowVersion[]>;
  /**
   * Waits, bounded, until the version has reached the position.
   *
   * @throws RefoldError `POSITION_TIMEOUT` with how far it is.
   */
  waitFor(projection: Projection, position: GlobalPosition): Promise<void>;
  progress(projection: Projection): Promise<VersionProgress>;
  /**
   * A whole answer in one statement, so that all of it is of one state of the database: the JSON of all root fields. Look-ups of one row
   * share statements. Where it is not offered, everything is resolved.
   */
  answer?(query: AnswerQuery): Promise<string>;
}

/** A row before and after one of its events, with all columns. */
export interface RowVersion {
  readonly event: RecordedEvent;
  readonly before: Row | null;
  readonly row: Row | null;
}

export interface CommandResult {
  /** Of the last event written; of the stream's last known state where the command led to no event. */
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly events: readonly RecordedEvent[];
}

export interface CommandExecutor {
  /**
   * Validates the input, folds the stream's state, decides and appends; tries again where another command was faster and the client set no `expectedVersion`.
   *
   * @throws InvalidInput, CommandRejected, ConcurrencyConflict
   */
  execute(
    command: Command,
    input: unknown,
    options: { readonly idempotencyKey?: string; readonly expectedVersion?: ExpectedVersion },
  ): Promise<CommandResult>;
}

/** A row as a subscriber gets it. */
export interface LiveRow {
  readonly row: Row | null;
  readonly position: GlobalPosition;
}

/** What became of a list since the last update. The first one holds the snapshot. */
export interface LiveListUpdate {
  readonly position: GlobalPosition;
  /** The whole list, in order: in the first update, and again after a switch of versions; else null. */
  readonly snapshot: readonly Row[] | null;
  readonly entered: readonly Row[];
  readonly changed: readonly Row[];
  readonly left: readonly RowKey[];
}

export interface LiveListQuery {
  readonly where: RowFilter | null;
  readonly orderBy: readonly RowOrder[];
  readonly first: number;
  readonly columns: readonly string[];
}

export interface LiveOptions {
  readonly after: GlobalPosition | null;
  /** Whether it stays with this version, whichever is active, for as long as it is kept current. @default false */
  readonly pinned?: boolean;
}

/**
 * Subscriptions to read models. Each gives the current state first, then every change, coalesced to the latest state where the
 * consumer is slower than the changes. They move with an activation where the new version has the columns that they read.
 *
 * @throws RefoldError `PROJECTION_SWITCHED` from the iterator where it has not, `PROJECTION_NOT_READY` while none is active.
 */
export interface LiveReadModels {
  row(
    projection: Projection,
    key: RowKey,
    columns: readonly string[],
    options: LiveOptions,
  ): AsyncIterableIterator<LiveRow>;
  list(projection: Projection, query: LiveListQuery, options: LiveOptions): AsyncIterableIterator<LiveListUpdate>;
  /** What became of the rows, removed ones included, from where the subscriber knows them. */
  changes(
    projection: Projection,
    query: ChangeFeedQuery,
    options: LiveOptions,
  ): AsyncIterableIterator<ChangeFeedUpdate>;
}
