import type { TimeBucket } from '../columns/aggregate-columns.ts';
import type { Row } from '../columns/row-codec.ts';
import type { Projection } from '../projection/projection.ts';
import type { TextFilter } from './text-operators.ts';

export type ComparisonOperator = 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte';

/** A condition on a table's columns, independent of SQL and GraphQL. Values are in canonical form. */
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
  | TextFilter
  /** Containment in a list, an object or JSON, like jsonb's `@>`. `value` has the form in which it is stored. */
  | { readonly kind: 'holds'; readonly column: string; readonly value: JsonValue }
  | { readonly kind: 'isNull'; readonly column: string; readonly isNull: boolean }
  | RelatedFilter;

/** A JSON value. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** A condition on the related rows of another table. */
export interface RelatedFilter {
  readonly kind: 'related';
  /** `some`: at least one related row matches the filter. `none`: no row matches. `every`: no row fails to match. */
  readonly quantifier: 'some' | 'none' | 'every';
  readonly target: RelatedTarget;
  /** Pairs of equal columns: this table's, then the target's. */
  readonly columns: readonly (readonly [own: string, other: string])[];
  readonly filter: RowFilter | null;
}

/** Another projection's table. In a filter's JSON text it is represented by its name. */
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
  /** Whether nulls come first or last. */
  readonly nulls: 'first' | 'last';
}

/** A position between rows: the values of the order columns, then of the key columns. */
export type Cursor = readonly unknown[];

/** One page of a table, read by keyset: stable under writes, and the last page is as fast as the first. */
export interface PageQuery {
  readonly where: RowFilter | null;
  /** Without the key columns, which are appended in ascending order to make the order total. */
  readonly orderBy: readonly RowOrder[];
  /** The columns to read. Key and order columns are read in addition. */
  readonly columns: readonly string[];
  /** `forward`: the first rows after `after`. `backward`: the last rows before `before`. */
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
 * An aggregate over many rows. `sum` and `avg` apply to numbers, `min` and `max` to ordered columns, `countDistinct` to any column that is
 * not a list, an object or JSON. Nulls are ignored.
 */
export type Measure =
  | { readonly kind: 'count' }
  | { readonly kind: 'countDistinct' | 'sum' | 'avg' | 'min' | 'max'; readonly column: string };

/** What the rows of a group share: a column's value, or the time bucket of the value in UTC. */
export interface Grouping {
  readonly column: string;
  readonly bucket: TimeBucket | null;
}

/** A condition on a group's measure. A null is never equal to, less than or greater than anything. */
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

/** Measures of the matching rows, in total or per group. */
export interface AggregateQuery {
  readonly where: RowFilter | null;
  /** If empty, all rows form one group, which exists even if there are no rows. */
  readonly groupBy: readonly Grouping[];
  readonly measures: readonly Measure[];
  /** All conditions must hold. */
  readonly having: readonly GroupCondition[];
  /** The groupings are appended in ascending order to make the order total. */
  readonly orderBy: readonly GroupOrder[];
  readonly limit: number | null;
}

/** One group, with values in the order of the query. */
export interface AggregateRow {
  /** For a column: its canonical form. For an hour: its first instant. For a day or a month: its first day. */
  readonly key: readonly unknown[];
  /** Counts are numbers, sums of whole numbers are bigints, other sums and averages are decimals; null if there is no value. */
  readonly measures: readonly unknown[];
}
