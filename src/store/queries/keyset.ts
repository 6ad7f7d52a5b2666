import { type RawBuilder, sql } from 'kysely';
import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Cursor, RowOrder } from '../../projections/queries/row-query.ts';
import { boundPlace, columnOf, placeRef } from '../tables/row-values.ts';
import { allOf, always, anyOf, never } from './row-filter.ts';

type Condition = RawBuilder<boolean>;

/** One column of a total order. */
export interface OrderTerm {
  readonly column: string;
  readonly direction: 'asc' | 'desc';
  /** Where nulls sort; `none` for a column without nulls. */
  readonly nulls: 'first' | 'last' | 'none';
}

/** The order's columns, then the key columns. No two rows are equal in all of them. */
export function orderTerms(projection: Projection, orderBy: readonly RowOrder[]): readonly OrderTerm[] {
  const keys = projection.keyColumns.map((column) => ({ column, direction: 'asc', nulls: 'last' }) as const);
  return [...orderBy, ...keys].map(({ column, direction, nulls }) => ({
    column,
    direction,
    nulls: columnOf(projection, column).flags.nullable ? nulls : 'none',
  }));
}

export function reversed(terms: readonly OrderTerm[]): readonly OrderTerm[] {
  return terms.map(({ column, direction, nulls }) => ({
    column,
    direction: direction === 'asc' ? 'desc' : 'asc',
    nulls: nulls === 'none' ? nulls : nulls === 'first' ? 'last' : 'first',
  }));
}

/** A condition for the rows after a cursor. @throws RefoldError `BAD_USER_INPUT` for a cursor of another order. */
export function afterCursor(projection: Projection, terms: readonly OrderTerm[], cursor: Cursor): Condition {
  if (cursor.length !== terms.length) {
    throw new RefoldError(
      'BAD_USER_INPUT',
      `The cursor belongs to another order: expected ${terms.length} values, found ${cursor.length}.`,
    );
  }
  const [first] = terms;
  const oneWay = terms.every((term) => term.nulls === 'none' && term.direction === first?.direction);
  // A row comparison is one range of an index over these columns.
  if (oneWay && first) {
    const columns = terms.map((term) => placeRef(projection, term.column));
    const values = terms.map((term, index) => boundPlace(projection, term.column, cursor[index]));
    return sql`(${sql.join(columns)}) ${sql.raw(first.direction === 'asc' ? '>' : '<')} (${sql.join(values)})`;
  }
  // The first condition is implied by the second, but as a range it lets an index of the first column start at the cursor.
  return allOf([
    ...(first ? [termAfter(projection, first, cursor[0], true)] : []),
    lexicographicallyAfter(projection, terms, cursor),
  ]);
}

export function beforeCursor(projection: Projection, terms: readonly OrderTerm[], cursor: Cursor): Condition {
  return afterCursor(projection, reversed(terms), cursor);
}

/** `a after x, or a = x and (b after y, or b = y and …)` */
function lexicographicallyAfter(projection: Projection, terms: readonly OrderTerm[], cursor: Cursor): Condition {
  const [term, ...otherTerms] = terms;
  const [value, ...otherValues] = cursor;
  if (term === undefined) return never;
  const after = termAfter(projection, term, value, false);
  if (otherTerms.length === 0) return after;
  const equal = termEqual(projection, term, value);
  return anyOf([after, allOf([equal, lexicographicallyAfter(projection, otherTerms, otherValues)])]);
}

function termAfter(projection: Projection, term: OrderTerm, value: unknown, orEqual: boolean): Condition {
  const { column, direction, nulls } = term;
  const isNull = sql<boolean>`${placeRef(projection, column)} is null`;
  if (value === null && nulls === 'first') return orEqual ? always : sql`${placeRef(projection, column)} is not null`;
  if (value === null && nulls === 'last') return orEqual ? isNull : never;
  const sign = sql.raw(`${direction === 'asc' ? '>' : '<'}${orEqual ? '=' : ''}`);
  const after = sql<boolean>`${placeRef(projection, column)} ${sign} ${boundPlace(projection, column, value)}`;
  return nulls === 'last' ? anyOf([after, isNull]) : after;
}

function termEqual(projection: Projection, { column, nulls }: OrderTerm, value: unknown): Condition {
  const ref = placeRef(projection, column);
  return value === null && nulls !== 'none'
    ? sql`${ref} is null`
    : sql`${ref} = ${boundPlace(projection, column, value)}`;
}
