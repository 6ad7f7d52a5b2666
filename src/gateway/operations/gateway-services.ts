import type { Command } from '../../commands/define-command.ts';
import type { EventMetadata, ExpectedVersion } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Pins, Rollout, VersionMap } from '../../projections/projection/version-map.ts';
import type { ReadPosition } from '../../projections/queries/change-cursor.ts';
import type { ResponseQuery } from '../../projections/queries/response-query.ts';
import type { HeldRows } from '../../schema/contract/held-rows.ts';
import type { CommandResult, LiveReadModels, ReadModels } from '../../schema/contract/operation-context.ts';
import type { ShadowResult } from '../../store/registry/shadows.ts';

/** The reads of one operation. Must be closed. */
export interface OperationReads extends ReadModels {
  /** The position of both versions in the operation's snapshot; null if their positions differ. @default never the same position */
  samePosition?(a: Projection, b: Projection): Promise<GlobalPosition | null>;
  /** The log positions of the rows read so far, for reads opened with `positions`. Undefined if they cannot be determined. */
  readPositions(): Promise<readonly ReadPosition[] | undefined>;
  /** Whether the reads were lost with a replica or a table, so a query has to run again with new reads of the primary. @default false */
  readonly lost?: boolean;
  close(): Promise<void>;
}

export interface CommandCall {
  readonly idempotencyKey?: string;
  readonly expectedVersion?: ExpectedVersion;
  /** Metadata of the request: correlation and trace context. */
  readonly metadata?: EventMetadata;
}

/** What the gateway needs from the runtime. Tests implement it in memory. */
export interface GatewayServices {
  readonly versions: {
    current(): VersionMap;
    /** The current map with these versions pinned. Throws RefoldError `BAD_USER_INPUT` if one is not maintained here. */
    pinned(pins: Pins): VersionMap;
    /** The listener is called after each change of the map. Returns a function that unsubscribes. */
    onChange(listener: () => void): () => void;
    /** Ready versions that clients meet before they are active. @default none */
    readonly rollout?: Rollout;
    /** Versions whose processor has stopped at an event; their data is stale. @default none */
    stopped?(): ReadonlySet<string>;
    /** By version id, why appends are refused: nothing checks its unique values. @default none */
    unchecked?(): ReadonlyMap<string, string>;
  };
  /** Opens reads. With `snapshot`, all reads see one state of the database. Without, lookups may share statements with other operations. */
  openReadModels(options: {
    readonly snapshot: boolean;
    readonly positions?: boolean | undefined;
    /** Whether its parts are answered one after the other, so each may read another store: a mutation. @default false */
    readonly separate?: boolean | undefined;
    /** Records rows that lack an event up to a demanded position, or refuses them. @default nothing is demanded */
    readonly held?: HeldRows | undefined;
    /** For a query that may be answered from a replica: the versions that it reads. @default not from a replica */
    readonly replicaOf?: VersionMap | undefined;
  }): OperationReads;
  /** Returns the JSON of all root fields with one statement. @default every query runs through resolvers */
  answer?(query: ResponseQuery, versions: VersionMap): Promise<string>;
  /** Whether queries of a version are executed all the same: not every database can run their statements. @default no version */
  executes?(projection: Projection): boolean;
  execute(command: Command, input: unknown, options: CommandCall): Promise<CommandResult>;
  /** Throws RefoldError `HISTORY_CHANGED` if the log now has other events at that position. @default never */
  checkToken?(token: PositionToken): Promise<void>;
  readonly live: LiveReadModels;
  /** Called after a statement failed because of a table that it reads: the table may be missing or altered. @default no check */
  lookAtTables?(): void;
  /** Why appends or reads do not reach the database at the moment; empty if they do. @default no problems */
  problems?(): { readonly appends?: string; readonly reads?: string };
  /** Why read stores apart from the log do not respond at the moment, by their names. @default no problems */
  storeProblems?(): Readonly<Record<string, string>>;
  /** Declared read models for which this process has no version left to serve, and the processes that do. @default none */
  lost?(): readonly {
    readonly name: string;
    readonly version: number;
    readonly answeredBy: readonly string[];
  }[];
  /** Counts the operations of canaries. @default not counted */
  readonly canaries?: {
    count(operation: { name: string; version: number; byCanary: boolean; failed: boolean }): void;
  };
  /** Stores the results of comparisons. @default not stored */
  readonly shadows?: { record(result: ShadowResult): Promise<void> };
  /** Counts which fields clients use. @default not counted */
  readonly usage?: {
    count(
      client: { readonly name: string; readonly version: string; readonly pins: string },
      paths: readonly string[],
      more: ReadonlySet<string>,
    ): void;
  };
}
