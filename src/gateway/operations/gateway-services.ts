import type { Command } from '../../commands/define-command.ts';
import type { EventMetadata, ExpectedVersion } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { Canary, Pins, ShadowRule, VersionMap } from '../../projections/declaration/version-map.ts';
import type { ChangeCursor } from '../../projections/queries/change-cursor.ts';
import type { CommandResult, LiveReadModels, ReadModels } from '../../schema/contract/operation-context.ts';
import type { ShadowResult } from '../../store/registry/shadows.ts';

export interface ReadPosition extends ChangeCursor {
  /** The projection's name. */
  readonly name: string;
}

/** The reads of one operation, which has a start and an end. */
export interface OperationReadModels extends ReadModels {
  /** Where two versions are in the operation's snapshot; null where they are apart. @default never at one position */
  samePosition?(a: Projection, b: Projection): Promise<GlobalPosition | null>;
  /** Where in the log the rows are that were read so far, for reads opened with `positions`; undefined where that can't be told. */
  readPositions(): Promise<readonly ReadPosition[] | undefined>;
  /** Whether the answer is of nothing whole, so that the operation is to be executed again without a replica. @default false */
  readonly lost?: boolean;
  close(): Promise<void>;
}

export interface CommandOptions {
  readonly idempotencyKey?: string;
  readonly expectedVersion?: ExpectedVersion;
  /** Of the request: correlation and trace context. */
  readonly metadata?: EventMetadata;
}

/** What the gateway answers from. Implemented over the runtime, and in memory by tests. */
export interface GatewayServices {
  readonly versions: {
    current(): VersionMap;
    /** With these versions in their places. Throws RefoldError `BAD_USER_INPUT` where one is not kept current here. */
    pinned(pins: Pins): VersionMap;
    /** Called after each change of the map. Returns what ends it. */
    onChange(listener: () => void): () => void;
    /** Ready versions that some clients are to be answered by. @default none */
    canaries?(): readonly Canary[];
    /** Ready versions that are to be compared with those that answer. @default none */
    shadows?(): readonly ShadowRule[];
    /** The versions whose processor has stopped at an event: what they serve is stale. @default none */
    stopped?(): ReadonlySet<string>;
  };
  /** With `snapshot` all reads see one state of the database; without, look-ups may share statements with other operations. */
  openReadModels(options: {
    readonly snapshot: boolean;
    readonly positions?: boolean | undefined;
    /** Of a query that may be answered from a replica: what it reads. @default it may not */
    readonly replicaOf?: VersionMap | undefined;
  }): OperationReadModels;
  /** Whether reads without a snapshot make whole answers (`answer`), so that queries are compiled. @default false */
  readonly compiles?: boolean;
  execute(command: Command, input: unknown, options: CommandOptions): Promise<CommandResult>;
  /** Throws RefoldError `HISTORY_CHANGED` where the log has other events by now. @default never */
  checkToken?(token: PositionToken): Promise<void>;
  readonly live: LiveReadModels;
  /** A statement was refused for a table that it read: it is missing, perhaps, or was altered. @default nobody looks */
  lookAtTables?(): void;
  /** Why appends or reads do not get through to the database now; empty where they do. @default they do */
  problems?(): { readonly appends?: string; readonly reads?: string };
  /** Declared read models of which no version answers here any more, and the processes that answer for them. @default none */
  lost?(): readonly {
    readonly name: string;
    readonly version: number;
    readonly answeredBy: readonly string[];
  }[];
  /** Where it is counted how canaries do. @default nowhere */
  readonly canaries?: {
    count(operation: { name: string; version: number; byCanary: boolean; failed: boolean }): void;
  };
  /** Where what such comparisons find is kept. @default nowhere */
  readonly shadows?: { record(result: ShadowResult): Promise<void> };
  /** Where what clients ask for is counted. @default nowhere */
  readonly usage?: {
    count(
      client: { readonly name: string; readonly version: string; readonly pins: string },
      paths: readonly string[],
      more: ReadonlySet<string>,
    ): void;
  };
}
