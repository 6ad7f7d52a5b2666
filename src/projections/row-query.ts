import type { Row } from './row-codec.ts';

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
  | { readonly kind: 'isNull'; readonly column: string; readonly isNull: boolean };

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
