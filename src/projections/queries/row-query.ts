import type { TimeBucket } from '../columns/aggregate-columns.ts';
import type { Row } from '../columns/row-codec.ts';
import type { Projection } from '../declaration/projection.ts';

export type ComparisonOperator = 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte';

/** A condition over one table's columns, as data: no SQL, no GraphQL. Values are in canonical form. */
export type RowFilter =
  | { readonly kind: 'and' | 'or'; readonly filters: readonly RowFilter[] }
  | { readonly kind: 'not'; readonly filter: RowFilter }
  | {
      readonly kind: 'compare';
      readonly column: string;
      readonly operator: ComparisonOperator;
      readonly value: unknown;
    }
  | { readonly kind: 'in'; readonly column: string; readonly values: readonly unknown[] }
  | { readonly kind: 'startsWith'; readonly column: string; readonly value: string }
  /** Any part of a text, character by character. */
  | { readonly kind: 'contains'; readonly column: string; readonly value: string }
  /** A pattern as LIKE has them (`%`, `_`, `\`), of a text in upper and lower case alike. */
  | { readonly kind: 'ilike'; readonly column: string; readonly pattern: string }
  /** What is in a list, an object or JSON, as jsonb's `@>` has it; `value` as it is written to the table. */
  | { readonly kind: 'holds'; readonly column: string; readonly value: JsonValue }
  | { readonly kind: 'isNull'; readonly column: string; readonly isNull: boolean }
  | RelatedFilter;

/** A value of JSON. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** A condition over the rows of another table that a row leads to. */
export interface RelatedFilter {
  readonly kind: 'related';
  /** `some`: there is one for which the filter holds. `none`: there is not. `every`: there is none for which it does not. */
  readonly quantifier: 'some' | 'none' | 'every';
  readonly target: RelatedTarget;
  /** The columns that are equal: this table's, then the target's. */
  readonly columns: readonly (readonly [own: string, other: string])[];
  readonly filter: RowFilter | null;
}

/** Another projection's table. In texts that stand for filters its place does. */
export interface RelatedTarget {
  readonly projection: Projection;
  toJSON(): string;
}

export function relatedTarget(projection: Projection): RelatedTarget {
  return { projection, toJSON: () => `${projection.id} ${projection.tableName}` };
}

export interface RowOrder {
  readonly column: string;
  readonly direction: 'asc' | 'desc';
  /** Where nulls go. */
  readonly nulls: 'first' | 'last';
}

/** A place between rows: the values of the order's columns, then of the key columns. */
export type Cursor = readonly unknown[];

/** One page of a table, by keyset: stable under writes, as fast on the last page as on the first. */
export interface PageQuery {
  readonly where: RowFilter | null;
  /** Without the key columns; they are appended ascending, so that the order is total. */
  readonly orderBy: readonly RowOrder[];
  /** The columns to read; key and order columns are read beside them. */
  readonly columns: readonly string[];
  /** From the first row after `after`, or the last rows before `before`. */
  readonly direction: 'forward' | 'backward';
  readonly limit: number;
  readonly after: Cursor | null;
  readonly before: Cursor | null;
}

export interface RowPage {
  readonly rows: readonly Row[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

/**
 * What is told of many rows at once. `sum` and `avg` are of numbers, `min` and `max` of what has an order, `countDistinct` of what is no
 * list, object or JSON; nulls are left out.
 */
export type Measure =
  | { readonly kind: 'count' }
  | { readonly kind: 'countDistinct' | 'sum' | 'avg' | 'min' | 'max'; readonly column: string };

/** What rows of a group have in common: a column's value, or the part of time that it lies in, by UTC. */
export interface Grouping {
  readonly column: string;
  readonly bucket: TimeBucket | null;
}

/** A condition over a group's measure. A null is not equal to anything, and neither less nor greater. */
export interface GroupCondition {
  readonly measure: Measure;
  readonly operator: ComparisonOperator;
  readonly value: unknown;
}

export interface GroupOrder {
  /** A measure, or one of the query's groupings. */
  readonly by: Measure | Grouping;
  readonly direction: 'asc' | 'desc';
  readonly nulls: 'first' | 'last';
}

/** Measures of the rows that match, as a whole or in groups. */
export interface AggregateQuery {
  readonly where: RowFilter | null;
  /** Empty: all rows are one group, which there is even where there are no rows. */
  readonly groupBy: readonly Grouping[];
  readonly measures: readonly Measure[];
  /** All must hold. */
  readonly having: readonly GroupCondition[];
  /** The groupings are appended ascending, so that the order is total. */
  readonly orderBy: readonly GroupOrder[];
  readonly limit: number | null;
}

/** One group, its values in the order of the query. */
export interface AggregateRow {
  /** Of a column: in its canonical form. Of an hour: its first instant. Of a day or a month: its first day. */
  readonly key: readonly unknown[];
  /** Counts are numbers, a sum of whole numbers a bigint, other sums and averages are decimals; null where there is no value. */
  readonly measures: readonly unknown[];
}
