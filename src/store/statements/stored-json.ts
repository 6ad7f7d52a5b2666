import type { ColumnFlags, ColumnKind } from '../../projections/columns/column.ts';
import type { EventFilter, GraphqlNames, RowKey } from '../../projections/projection/projection.ts';
import type { Relation } from '../../projections/projection/relations.ts';

/** The stored part of a version's declaration, for processes that do not declare the version. */
export interface StoredDefinition {
  readonly columns: readonly {
    readonly name: string;
    readonly sqlName: string;
    readonly type: ColumnKind;
    readonly flags: ColumnFlags;
  }[];
  readonly keyColumns: readonly string[];
  readonly filter: readonly EventFilter[];
  readonly graphql: GraphqlNames;
  /** Missing in definitions stored by the first releases. */
  readonly relations?: Readonly<Record<string, Relation>>;
  /** The position after which a partial table begins. Missing for a whole one. */
  readonly startAfter?: string;
}

/** Why a processor stopped. */
export interface ProcessorError {
  readonly message: string;
  readonly code?: string;
  /** Of the event, if it is the reason. */
  readonly position?: string;
  readonly type?: string;
  /** Missing if it is hidden. */
  readonly streamId?: string;
  readonly at: string;
  /** Fingerprint of the code that stopped. */
  readonly codeFingerprint?: string;
}

/** An event that a processor tries again. */
export interface ProcessorRetry {
  readonly position: string;
  /** The number of attempts that have failed. */
  readonly attempts: number;
  readonly message: string;
  /** When the next attempt begins. */
  readonly nextAt: string;
}

/** A batch that the checkpoint of its partition keeps until the registry has it. */
export interface StoredBatch {
  /** The checkpoint before it. */
  readonly from: string;
  readonly events: number;
  readonly rows: number;
  readonly busyMs: number;
  /** The changed keys. Missing if the version was being built: nobody follows it. */
  readonly upserted?: readonly RowKey[];
  readonly deleted?: readonly RowKey[];
  /** The last event that was left out of a row: a dead letter, or a skipped event. `from`: the checkpoint before its batch. */
  readonly leftOut?: { readonly from: string; readonly position: string; readonly key: RowKey | null };
}

/** Floors as stored in the database, because JSON has no bigint. */
export interface StoredFloors {
  /** At this position the floors become irrelevant. */
  readonly until: string;
  /** The anchor of that position. @default unknown */
  readonly anchor?: string | null;
  readonly layers: readonly { readonly of: number; readonly checkpoints: readonly string[] }[];
}

/** Why an event could not be folded or handled. */
export interface LetterError {
  readonly message: string;
  readonly stack?: string;
}
