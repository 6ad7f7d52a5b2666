import { type RawBuilder, sql } from 'kysely';
import type { Projection } from '../projections/projection.ts';
import type { ComparisonOperator, RowFilter } from '../projections/row-query.ts';
import { boundArray, boundValue, columnOf, columnRef, comparableRef } from './row-values.ts';

type Condition = RawBuilder<boolean>;

/**
 * A filter as SQL. It knows true and false only, as clients do, where SQL has a third value:
 * `eq` null finds nulls, `ne` is all that `eq` is not (nulls too), `not` is the complement of its filter, and
 * a null is neither less nor greater than anything.
 *
 * @throws RefoldError `BAD_USER_INPUT` for an unknown column, or a value that the column could never hold.
 */
export function filterSql(projection: Projection, filter: RowFilter | null): Condition {
  return filter === null ? always : condition(projection, filter, false);
}

export const always: Condition = sql<boolean>`true`;
export const never: Condition = sql<boolean>`false`;

export function allOf(conditions: readonly Condition[]): Condition {
  return joined(conditions, sql` and `, always);
}

export function anyOf(conditions: readonly Condition[]): Condition {
  return joined(conditions, sql` or `, never);
}

// Negations are pushed down to the columns: only there can a null be told apart without losing the index.
function condition(projection: Projection, filter: RowFilter, negated: boolean): Condition {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const conditions = filter.filters.map((part) => condition(projection, part, negated));
      return (filter.kind === 'and') === negated ? anyOf(conditions) : allOf(conditions);
    }
    case 'not':
      return condition(projection, filter.filter, !negated);
    case 'compare':
      return comparison(projection, filter.column, filter.operator, filter.value, negated);
    case 'in':
      return membership(projection, filter.column, filter.values, negated);
    case 'startsWith':
      return prefix(projection, filter.column, filter.value, negated);
    case 'isNull':
      return nullness(projection, filter.column, filter.isNull !== negated);
  }
}

function comparison(
  projection: Projection,
  column: string,
  operator: ComparisonOperator,
  value: unknown,
  negated: boolean,
): Condition {
  const equality = operator === 'eq' || operator === 'ne';
  if (value === null && equality) return nullness(projection, column, (operator === 'eq') !== negated);
  if (value === null) return negated ? always : never;
  const [sign, withNulls] = signs[operator][negated ? 'negated' : 'plain'];
  const ref = equality ? columnRef(projection, column) : comparableRef(projection, column);
  const compared = sql<boolean>`${ref} ${sql.raw(sign)} ${boundValue(projection, column, value)}`;
  return withNulls ? orNull(projection, column, compared) : compared;
}

type Sign = readonly [sign: string, withNulls: boolean];

const signs: Readonly<Record<ComparisonOperator, { readonly plain: Sign; readonly negated: Sign }>> = {
  eq: { plain: ['=', false], negated: ['<>', true] },
  ne: { plain: ['<>', true], negated: ['=', false] },
  lt: { plain: ['<', false], negated: ['>=', true] },
  lte: { plain: ['<=', false], negated: ['>', true] },
  gt: { plain: ['>', false], negated: ['<=', true] },
  gte: { plain: ['>=', false], negated: ['<', true] },
};

function membership(projection: Projection, column: string, values: readonly unknown[], negated: boolean): Condition {
  const present = values.filter((value) => value !== null);
  const namesNull = present.length < values.length;
  if (values.length === 0) return negated ? always : never;
  if (present.length === 0) return nullness(projection, column, !negated);
  const list = boundArray(projection, column, present);
  const ref = columnRef(projection, column);
  const found = negated ? sql<boolean>`${ref} <> all(${list})` : sql<boolean>`${ref} = any(${list})`;
  return namesNull !== negated ? orNull(projection, column, found) : found;
}

/** As a range, not as a pattern: no wildcards to escape, and an index serves it with any plan. */
function prefix(projection: Projection, column: string, value: string, negated: boolean): Condition {
  const ref = comparableRef(projection, column);
  const end = afterPrefix(value);
  const from = boundValue(projection, column, value);
  const to = end === undefined ? undefined : boundValue(projection, column, end);
  if (!negated) return to === undefined ? sql`${ref} >= ${from}` : sql`(${ref} >= ${from} and ${ref} < ${to})`;
  return orNull(
    projection,
    column,
    to === undefined ? sql`${ref} < ${from}` : sql`(${ref} < ${from} or ${ref} >= ${to})`,
  );
}

/** The first text, in the order of code points, after all that start with the prefix; none where nothing is after them. */
export function afterPrefix(prefix: string): string | undefined {
  const characters = Array.from(prefix.toWellFormed());
  while (characters.at(-1) === '\u{10ffff}') characters.pop();
  const last = characters.pop()?.codePointAt(0);
  if (last === undefined) return undefined;
  // Surrogates are no characters: the next after U+D7FF is U+E000.
  return characters.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1);
}

function nullness(projection: Projection, column: string, isNull: boolean): Condition {
  const ref = columnRef(projection, column);
  return isNull ? sql<boolean>`${ref} is null` : sql<boolean>`${ref} is not null`;
}

function orNull(projection: Projection, column: string, found: Condition): Condition {
  if (!columnOf(projection, column).flags.nullable) return found;
  return sql<boolean>`(${found} or ${columnRef(projection, column)} is null)`;
}

function joined(conditions: readonly Condition[], separator: RawBuilder<unknown>, empty: Condition): Condition {
  const [first, ...others] = conditions;
  if (first === undefined) return empty;
  return others.length === 0 ? first : sql<boolean>`(${sql.join([...conditions], separator)})`;
}
