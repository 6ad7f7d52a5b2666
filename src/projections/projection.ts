import type { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily } from '../events/event-family.ts';
import type { Columns } from './column.ts';
import type { Relation } from './relations.ts';
import type { Row, RowCodec } from './row-codec.ts';

/** The event types of one family that a reader of the log wants. */
export interface EventFilter {
  readonly family: string;
  readonly types: readonly string[];
}

/** When a version that has caught up becomes active. */
export interface ActivationRule {
  /** `auto`: as soon as it is ready. `manual`: on the operator's word (`refold activate`). */
  readonly by: 'auto' | 'manual';
  /** How many positions of the log the version may be behind to count as ready. */
  readonly maxLag: number;
}

/** An event that could not be folded into a row. */
export interface FoldFailure {
  readonly event: RecordedEvent;
  /** Null where `key` itself failed. */
  readonly key: RowKey | null;
  readonly error: RefoldError;
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

export interface GraphqlNames {
  /** The object type, such as `CartSummary`. */
  readonly type: string;
  /** The field that gives one row, such as `cartSummary`. */
  readonly single: string;
  /** The field that gives a connection, such as `cartSummaries`. */
  readonly list: string;
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
  /** `cart_summary_v2`; after rebuilds `cart_summary_v2_g2` and so on, see {@link storedIn} */
  readonly tableName: string;
  /** SQL name of each column, `cartId` → `cart_id`. */
  readonly sqlNames: Readonly<Record<string, string>>;
  readonly activation: ActivationRule;
  readonly onError: ErrorPolicy;
  readonly graphql: GraphqlNames;
  /** To other projections, by name; fields of the GraphQL type. */
  readonly relations: Readonly<Record<string, Relation>>;
  readonly codec: RowCodec;
  /** Changes with the table's columns. */
  readonly tableFingerprint: string;
  /** Changes with the code of `key` and `evolve`. */
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

/** The text that stands for a key in maps and change lists; equal keys have equal texts. */
export function keyText(key: RowKey): string {
  // Nearly all keys are one text, and this is asked for every event.
  if (key.length === 1 && typeof key[0] === 'string') return `[${JSON.stringify(key[0])}]`;
  return JSON.stringify(key, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
}
