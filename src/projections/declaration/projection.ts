import type { Access } from '../../access.ts';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import type { Columns } from '../columns/column.ts';
import type { Row, RowCodec } from '../columns/row-codec.ts';
import type { ActivationRule } from './activation-rule.ts';
import type { StreamOfRow } from './history.ts';
import type { Relation } from './relations.ts';
import type { SqlFold } from './sql-fold.ts';
import type { TableHook } from './table-hooks.ts';

/** The event types of one family that a reader of the log wants. */
export interface EventFilter {
  readonly family: string;
  readonly types: readonly string[];
}

/** An event that could not be folded into a row. */
export interface FoldFailure {
  readonly event: RecordedEvent;
  /** Null where `key` itself failed. */
  readonly key: RowKey | null;
  readonly error: RefoldError;
}

/** How many events failed: one that failed on several rows is one. */
export function eventsIn(failures: readonly FoldFailure[]): number {
  return new Set(failures.map(({ event }) => event.position)).size;
}

/**
 * What becomes of an event that `key` or `evolve` fails on.
 *
 * - `stop`: the processor stops before it; nothing is lost, and nothing goes on.
 * - `skip`: the row stays as it was; `onSkip` is told, before the checkpoint moves.
 * - `dead-letter`: the event is kept, and later events of the same row are kept behind it, in order; other rows go on. Mended, they
 *   are folded with `refold dead-letters retry`.
 */
export interface ErrorPolicy {
  readonly policy: 'stop' | 'skip' | 'dead-letter';
  readonly onSkip?: (failure: FoldFailure) => void;
}

/** When snapshots of a read table are taken, for rebuilds to start from. */
export interface SnapshotSchedule {
  /** One after so many events folded into the version. */
  readonly everyEvents: number;
  /** How many of them are kept; those taken by hand stay until they are dropped. @default 3 */
  readonly keep: number;
}

/**
 * When a version's rows are written.
 *
 * - `async`: behind the append, by whichever process maintains the version.
 * - `inline`: with the append, in its transaction.
 */
export type ProjectionMode = 'async' | 'inline';

export interface GraphqlNames {
  /** The object type, such as `CartSummary`. */
  readonly type: string;
  /** The field that gives one row, such as `cartSummary`. */
  readonly single: string;
  /** The field that gives a connection, such as `cartSummaries`. */
  readonly list: string;
  /**
   * Whether rows have a global `id` and are found by `node(id)`.
   * @default true, unless the table has a column or the projection a relation called `id`, which then is the field of that name
   */
  readonly globalId: boolean;
}

/** A key's values in the order of the key columns, in canonical form. */
export type RowKey = readonly unknown[];

/** A declared projection version, checked and frozen. Made by `defineProjection`. */
export interface Projection<Name extends string = string, C extends Columns = Columns> {
  readonly kind: 'projection';
  readonly name: Name;
  readonly version: number;
  /** `cart_summary@2` */
  readonly id: string;
  readonly description?: string;
  readonly families: readonly EventFamily[];
  /** Derived from the handlers; applied in the query that reads the log. */
  readonly filter: readonly EventFilter[];
  readonly columns: C;
  // Any keyof C would keep a declared projection from being a `Projection`.
  readonly keyColumns: readonly string[];
  /** The columns of each unique index beside the key. */
  readonly uniqueIndexes: readonly (readonly string[])[];
  /** `cart_summary_v2`; after rebuilds `cart_summary_v2_g2` and so on, see {@link storedIn} */
  readonly tableName: string;
  /** SQL name of each column, `cartId` → `cart_id`. */
  readonly sqlNames: Readonly<Record<string, string>>;
  readonly mode: ProjectionMode;
  readonly activation: ActivationRule;
  readonly onError: ErrorPolicy;
  /** When snapshots of the read table are taken by themselves; null: never. */
  readonly snapshots: SnapshotSchedule | null;
  readonly access: Access | undefined;
  /** The columns whose values are in no message, log or status. */
  readonly hidden: ReadonlySet<string>;
  readonly history: StreamOfRow;
  readonly sunset: Date | null;
  /** Run with the making and the dropping of each of its tables. */
  readonly setUp: TableHook | undefined;
  readonly tearDown: TableHook | undefined;
  /** By how many owners it is processed, where the registry does not know it yet. */
  readonly partitions: number;
  readonly graphql: GraphqlNames;
  /** To other projections, by name; fields of the GraphQL type. */
  readonly relations: Readonly<Record<string, Relation>>;
  readonly codec: RowCodec;
  /** How a whole batch is folded in PostgreSQL; null where `apply` folds event by event. */
  readonly sqlFold: SqlFold | null;
  /** Changes with the table's columns. */
  readonly tableFingerprint: string;
  /** Changes with the code of `key` and `evolve` or the SQL of `evolveSql`, and with `codeVersion`. */
  readonly codeFingerprint: string;
  /** The keys of the rows that an event touches; none, one or several. */
  keysOf(event: RecordedEvent): readonly RowKey[];
  /** One step of the fold: the row after the event, in canonical form; null removes it; `row` itself where nothing changed. */
  apply(row: Row | null, event: RecordedEvent, key: RowKey): Row | null;
}

/** The version with its rows in another table: each rebuild makes a new one. */
export function storedIn<P extends Projection>(projection: P, tableName: string): P {
  return Object.freeze({ ...projection, tableName });
}

/** As {@link keyText}, of a list. */
export function keysText(keys: readonly RowKey[]): string {
  return `[${keys.map(keyText).join(',')}]`;
}

/** The text that stands for a key in maps and change lists; equal keys have equal texts. Never to be changed: partitions go by it. */
export function keyText(key: RowKey): string {
  // Asked for every event. Never put together of parts: such a text is slow to look up for the first time.
  return key.every(isPlain) ? JSON.stringify(key) : JSON.stringify(key, bigintsAsText);
}

const isPlain = (value: unknown) => typeof value === 'string' || typeof value === 'number';

const bigintsAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);
