import type { Viewer } from '../../access.ts';
import type { Command } from '../../commands/define-command.ts';
import type { ExpectedVersion, RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { VersionMap, VersionProgress } from '../../projections/projection/version-map.ts';
import type {
  AggregateQuery,
  AggregateRow,
  PageQuery,
  RowFilter,
  RowOrder,
  RowPage,
} from '../../projections/queries/row-query.ts';
import type { ChangeFeedQuery, ChangeFeedUpdate } from './change-feed.ts';
import type { HeldRows } from './held-rows.ts';

/**
 * What the resolvers of one operation need. The schema declares it, and the runtime and the store implement it, so the schema needs no
 * database. Each operation has its own; its version map and its snapshot of the read tables stay the same to the end.
 */
export interface OperationContext {
  readonly versions: VersionMap;
  /** The caller; `system` is the program itself. */
  readonly viewer: Viewer | 'system';
  readonly readModels: ReadModels;
  readonly commands: CommandExecutor;
  /** Called before each root field of a mutation, with its key in the response. @default nothing */
  beginField?(key: string): void;
  readonly live: LiveReadModels;
  /** The position that the client requires its results to include (`@after`, header `refold-after`); null if none. */
  readonly after: GlobalPosition | null;
  /** Throws RefoldError `HISTORY_CHANGED` if the log no longer has the event that the client's token refers to. @default never */
  checkToken?(token: PositionToken): Promise<void>;
  /** The id of the last event that a reconnecting client received (header `Last-Event-ID`). */
  readonly lastEventId: string | null;
}

/**
 * Reads of current rows. A decorator of {@link ReadModels} spreads the object that it wraps and overrides all of these; the compiler checks
 * that.
 */
export interface RowReads {
  /**
   * Returns the rows of these keys, in their order; null if a row does not exist or does not match `where`. Concurrent calls with the same
   * `where` share statements.
   */
  findByKeys(
    projection: Projection,
    keys: readonly RowKey[],
    columns: readonly string[],
    where?: RowFilter | null,
  ): Promise<readonly (Row | null)[]>;
  /** Returns the row with these values in the columns of a unique index. Concurrent calls share statements like those by key. */
  findByUnique(
    projection: Projection,
    by: readonly string[],
    values: RowKey,
    columns: readonly string[],
    where?: RowFilter | null,
  ): Promise<Row | null>;
  findPage(projection: Projection, query: PageQuery): Promise<RowPage>;
  /** Counts rows. With `upTo`, it stops counting at this number. */
  count(projection: Projection, where: RowFilter | null, upTo?: number | null): Promise<number>;
  /** Returns a page of the rows whose column has the value. Concurrent calls that differ only in the value share a statement. */
  findRelated(projection: Projection, column: string, value: unknown, query: PageQuery): Promise<RowPage>;
  /** Counts the rows of {@link findRelated} in all pages. */
  countRelated(
    projection: Projection,
    column: string,
    value: unknown,
    where: RowFilter | null,
    upTo?: number | null,
  ): Promise<number>;
  /** Returns one row if the query has no groupings. */
  aggregate(projection: Projection, query: AggregateQuery): Promise<readonly AggregateRow[]>;
}

/** The reads of one operation. All reads of one query see one snapshot of the database. */
export interface ReadModels extends RowReads {
  /**
   * Returns every state that the row has had, folded from its events. Only for a projection with `history`. `columns` are those that are
   * shown, `shown` what else: the events, with their payloads or without; or states alone, and then those that the viewer may not see are null.
   *
   * @throws RefoldError `QUERY_TOO_COMPLEX` if there are too many events
   */
  history(
    projection: Projection,
    key: RowKey,
    columns: readonly string[],
    shown: 'payloads' | 'events' | 'states',
  ): Promise<readonly RowVersion[]>;
  /**
   * Waits until the version has reached the position, up to a timeout.
   *
   * @throws RefoldError `POSITION_TIMEOUT` with the version's position.
   */
  waitFor(projection: Projection, position: GlobalPosition): Promise<void>;
  progress(projection: Projection): Promise<VersionProgress>;
}

/** A row before and after one of its events, with all columns. */
export interface RowVersion {
  readonly event: RecordedEvent;
  readonly before: Row | null;
  readonly row: Row | null;
}

export interface CommandResult {
  /** The position of the last event written; if the command led to no event, that of the stream's last known state. */
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly events: readonly RecordedEvent[];
}

export interface CommandExecutor {
  /**
   * Validates the input, folds the stream's state, decides and appends. Retries if another command was faster, unless the client set
   * `expectedVersion`.
   *
   * @throws InvalidInput, CommandRejected, ConcurrencyConflict
   */
  execute(
    command: Command,
    input: unknown,
    options: { readonly idempotencyKey?: string; readonly expectedVersion?: ExpectedVersion },
  ): Promise<CommandResult>;
}

/** A row as sent to a subscriber. */
export interface LiveRow {
  readonly row: Row | null;
  readonly position: GlobalPosition;
}

/** The changes of a list since the last update. The first update holds the snapshot. */
export interface LiveListUpdate {
  readonly position: GlobalPosition;
  /** The whole list in order, in the first update and after a switch of versions; else null. */
  readonly snapshot: readonly Row[] | null;
  readonly entered: readonly Row[];
  readonly changed: readonly Row[];
  readonly left: readonly RowKey[];
  /**
   * Where rows stand that entered or moved, in the order of the list. Placed one after the other, they lead to the list's order. Computed when it
   * is read. @default none
   */
  readonly places?: readonly ListPlace[];
}

/** A row stands directly after another one, or at the beginning. */
export interface ListPlace {
  readonly key: RowKey;
  readonly after: RowKey | null;
}

export interface LiveListQuery {
  readonly where: RowFilter | null;
  readonly orderBy: readonly RowOrder[];
  readonly first: number;
  readonly columns: readonly string[];
}

export interface LiveOptions {
  readonly after: GlobalPosition | null;
  /** Whether the subscription stays on this version as long as it is maintained, even if another becomes active. @default false */
  readonly pinned?: boolean;
  /** Receives rows that lack an event up to `after`, before the first message. @default not checked */
  readonly held?: HeldRows | undefined;
}

/**
 * Subscriptions to read models. Each sends the current state first, then every change. If the consumer is slower than the changes, they are
 * coalesced to the latest state. An activation moves the subscription to the new version if that has the columns that it reads.
 *
 * @throws RefoldError `PROJECTION_SWITCHED` from the iterator if it does not, `PROJECTION_NOT_READY` while no version is active.
 */
export interface LiveReadModels {
  row(
    projection: Projection,
    key: RowKey,
    columns: readonly string[],
    options: LiveOptions,
  ): AsyncIterableIterator<LiveRow>;
  list(projection: Projection, query: LiveListQuery, options: LiveOptions): AsyncIterableIterator<LiveListUpdate>;
  /** Sends the changes of the rows since the subscriber's cursor, including removed rows. */
  changes(
    projection: Projection,
    query: ChangeFeedQuery,
    options: LiveOptions,
  ): AsyncIterableIterator<ChangeFeedUpdate>;
}
