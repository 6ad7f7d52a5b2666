import type { Access } from '../../access.ts';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Columns } from '../columns/column.ts';
import type { Row, RowCodec } from '../columns/row-codec.ts';
import type { ActivationRule } from './activation-rule.ts';
import type { CheckedHistoryRules, StreamOfRow } from './history.ts';
import type { Relation } from './relations.ts';
import type { RetryRule } from './retry-rules.ts';
import type { SqlFold } from './sql-fold.ts';
import type { TableHook } from './table-hooks.ts';

/** The event types of one family that a reader of the log is subscribed to. */
export interface EventFilter {
  readonly family: string;
  readonly types: readonly string[];
}

/** An event that could not be folded into a row. */
export interface FoldFailure {
  readonly event: RecordedEvent;
  /** Null if `key` itself failed. */
  readonly key: RowKey | null;
  readonly error: RefoldError;
}

/** The number of failed events. An event that failed on several rows counts once. */
export function eventsIn(failures: readonly FoldFailure[]): number {
  return new Set(failures.map(({ event }) => event.position)).size;
}

/**
 * What happens when `key` or `evolve` fails on an event.
 *
 * - `stop`: the processor stops before the event. Nothing is lost, and nothing is processed until the error is fixed.
 * - `skip`: the row stays as it was. `onSkip` is called before the checkpoint moves.
 * - `dead-letter`: the event is kept as a dead letter. Later events of the same row are kept behind it, in order. Other rows continue.
 *   After a fix, `refold dead-letters retry` folds the kept events.
 */
export interface ErrorPolicy {
  readonly policy: 'stop' | 'skip' | 'dead-letter';
  /**
   * When an event is tried again before the policy applies, in the words of a reactor's `retries`. The first rule that fits decides. Meanwhile
   * this projection waits and the others continue. What the database refuses is a `DATABASE_ERROR`; its SQLSTATE is `error.fields.sqlState`. A failed
   * `key`, `evolve` or upcaster is an `EVOLVE_FAILED` whose `cause` is the error that it threw. It is tried again only by a rule that
   * names it in `on`. Not with mode `inline`.
   * @default no retries
   */
  readonly retries?: readonly RetryRule[];
  /** Awaited before the checkpoint moves. */
  readonly onSkip?: (failure: FoldFailure) => unknown;
}

/** The checked `onError` of a projection. */
export interface OnError extends ErrorPolicy {
  readonly retries: readonly RetryRule[];
}

/** When snapshots of a read table are taken. Rebuilds can start from them. */
export interface SnapshotSchedule {
  /** A snapshot is taken after this many events are folded into the version. */
  readonly everyEvents: number;
  /** How many automatic snapshots are kept. Manual snapshots stay until they are dropped. @default 3 */
  readonly keep: number;
}

/**
 * When a version's rows are written.
 *
 * - `async`: after the append, by the process that owns the version.
 * - `inline`: with the append, in its transaction.
 */
export type ProjectionMode = 'async' | 'inline';

export interface GraphqlNames {
  /** The object type, such as `CartSummary`. */
  readonly type: string;
  /** The field that returns one row, such as `cartSummary`. */
  readonly single: string;
  /** The field that returns a connection, such as `cartSummaries`. */
  readonly list: string;
  /**
   * Whether rows have a global `id` and can be read with `node(id)`.
   * @default true, unless the table has a column or the projection has a relation called `id`
   */
  readonly globalId: boolean;
}

/** The values of a key in the order of the key columns, in canonical form. */
export type RowKey = readonly unknown[];

/** A declared projection version, checked and frozen. Created by `defineProjection`. */
export interface Projection<Name extends string = string, C extends Columns = Columns> {
  readonly kind: 'projection';
  readonly name: Name;
  readonly version: number;
  /** `cart_summary@2` */
  readonly id: string;
  readonly description?: string;
  readonly families: readonly EventFamily[];
  /** Derived from the handlers. The query that reads the log applies it. */
  readonly filter: readonly EventFilter[];
  readonly columns: C;
  // Not `keyof C`: a declared projection would then not be assignable to `Projection`.
  readonly keyColumns: readonly string[];
  /** The columns of each unique index besides the key. */
  readonly uniqueIndexes: readonly (readonly string[])[];
  /** `cart_summary_v2`. After rebuilds `cart_summary_v2_g2` and so on, see {@link storedIn}. */
  readonly tableName: string;
  /** The SQL name of each column: `cartId` → `cart_id`. */
  readonly sqlNames: Readonly<Record<string, string>>;
  readonly mode: ProjectionMode;
  /** The read store that holds the version: a name of `readStores`, or `default`. */
  readonly store: string;
  /** Whether the declaration names the store. Otherwise the configuration's `store` decides. */
  readonly namesStore: boolean;
  readonly activation: ActivationRule;
  readonly onError: OnError;
  /** When snapshots of the read table are taken automatically; null: never. */
  readonly snapshots: SnapshotSchedule | null;
  readonly access: Access | undefined;
  /** Columns whose values never appear in messages, logs or status. */
  readonly hidden: ReadonlySet<string>;
  readonly history: StreamOfRow;
  readonly historyRules: CheckedHistoryRules | undefined;
  /** The position after which it begins. If it is not the beginning of the log, the table is partial. */
  readonly startAfter: GlobalPosition;
  readonly sunset: Date | null;
  /** Run when one of its tables is created or dropped. */
  readonly setUp: TableHook | undefined;
  readonly tearDown: TableHook | undefined;
  /** The number of owners that process it. Used only until the registry stores a number. */
  readonly partitions: number;
  readonly graphql: GraphqlNames;
  /** Relations to other projections, by name. They are fields of the GraphQL type. */
  readonly relations: Readonly<Record<string, Relation>>;
  readonly codec: RowCodec;
  /** How PostgreSQL folds a whole batch; null if `apply` folds event by event. */
  readonly sqlFold: SqlFold | null;
  /** Changes when the table's columns change. */
  readonly tableFingerprint: string;
  /** Changes when the code of `key` and `evolve`, the SQL of `evolveSql` or `codeVersion` changes. */
  readonly codeFingerprint: string;
  /** The keys of the rows that an event changes; may be empty. */
  keysOf(event: RecordedEvent): readonly RowKey[];
  /** Folds one event: returns the row after the event, in canonical form. Null removes the row. Returns `row` itself if nothing changed. */
  apply(row: Row | null, event: RecordedEvent, key: RowKey): Row | null;
}

/** The store in the database of the log. */
export const defaultStore = 'default';

/** The version with its rows in another table. Each rebuild creates a new table. */
export function storedIn<P extends Projection>(projection: P, tableName: string): P {
  return Object.freeze({ ...projection, tableName });
}

/** {@link keyText} for a list of keys. */
export function keysText(keys: readonly RowKey[]): string {
  return `[${keys.map(keyText).join(',')}]`;
}

/** The text of a key in maps and change lists. Equal keys have equal texts. Never change it: it decides a row's partition. */
export function keyText(key: RowKey): string {
  // Hot path: runs for every event. Not concatenated from parts: V8 flattens such a string on its first lookup, which is slow.
  return key.every(isPlain) ? JSON.stringify(key) : JSON.stringify(key, bigintsAsText);
}

const isPlain = (value: unknown) => typeof value === 'string' || typeof value === 'number';

const bigintsAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);

/** Says what a partial table lacks; null for a whole one. */
export function partialText({ startAfter }: Pick<Projection, 'startAfter'>): string | null {
  return startAfter === 0n ? null : `it holds only events after position ${startAfter}`;
}
