import { type RawBuilder, sql } from 'kysely';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ComparisonOperator, RelatedFilter, RowFilter } from '../../projections/queries/row-query.ts';
import { type TextFilter, textSearch } from '../../projections/queries/text-operators.ts';
import { Placeholder, RangeSlots } from '../tables/placeholders.ts';
import {
  boundArray,
  boundJson,
  boundValue,
  caseInsensitiveRef,
  columnOf,
  columnRef,
  compared,
  comparedWithAny,
  placeRef,
  type Sign,
} from '../tables/row-values.ts';

type Condition = RawBuilder<boolean>;

/**
 * Compiles a filter to SQL. A filter is either true or false, unlike SQL's three-valued logic: `eq` null matches nulls, `ne` matches
 * everything that `eq` does not (including nulls), `not` is the complement of its filter, and a null is neither less nor greater than
 * anything.
 *
 * @throws RefoldError `BAD_USER_INPUT` for an unknown column, or a value that the column cannot hold.
 */
export function filterSql(projection: Projection, filter: RowFilter | null, readSchema: string): Condition {
  return filter === null
    ? always
    : condition({ projection, readSchema, name: projection.tableName, depth: 0 }, filter, false);
}

/** The table of a condition, and its alias in the statement. */
interface Place {
  readonly projection: Projection;
  readonly readSchema: string;
  readonly name: string;
  readonly depth: number;
}

export const always: Condition = sql<boolean>`true`;
export const never: Condition = sql<boolean>`false`;

export function allOf(conditions: readonly Condition[]): Condition {
  return joined(conditions, sql` and `, always);
}

export function anyOf(conditions: readonly Condition[]): Condition {
  return joined(conditions, sql` or `, never);
}

// Negations are pushed down to the columns. Only there can nulls be handled without losing the index.
function condition(place: Place, filter: RowFilter, negated: boolean): Condition {
  const { projection } = place;
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const conditions = filter.filters.map((part) => condition(place, part, negated));
      return (filter.kind === 'and') === negated ? anyOf(conditions) : allOf(conditions);
    }
    case 'not':
      return condition(place, filter.filter, !negated);
    case 'compare':
      return comparison(projection, filter.column, filter.operator, filter.value, negated);
    case 'in':
      return membership(projection, filter.column, filter.values, negated);
    case 'holds': {
      const inside = sql<boolean>`${columnRef(projection, filter.column)} @> ${boundJson(projection, filter.column, filter.value)}`;
      return held(projection, filter.column, inside, negated);
    }
    case 'isNull':
      return nullness(projection, filter.column, filter.isNull !== negated);
    case 'related':
      return related(place, filter, negated);
    default:
      return textual(projection, filter, negated);
  }
}

/** A semi-join or its complement. A null refers to no row. */
function related(place: Place, { quantifier, target, columns, filter }: RelatedFilter, negated: boolean): Condition {
  const { projection } = target;
  // A unique alias, because a table can be related to itself. Unqualified columns are those of the innermost table.
  const inner = {
    projection,
    readSchema: place.readSchema,
    name: `related_${place.depth + 1}`,
    depth: place.depth + 1,
  };
  const onKeys = columns.map(([own, other]) =>
    compared(projection, other, '=', qualified(place, own), qualified(inner, other)),
  );
  // `every` searches for a row that fails the filter. Without a filter no row fails.
  const breaks = quantifier === 'every';
  const match = filter === null ? (breaks ? never : always) : condition(inner, filter, breaks);
  const exists = sql<boolean>`exists (
    select from ${sql.id(place.readSchema, projection.tableName)} as ${sql.id(inner.name)}
    where ${allOf([...onKeys, match])}
  )`;
  return (quantifier === 'some') === negated ? sql<boolean>`not ${exists}` : exists;
}

function qualified({ projection, name }: Place, column: string): Condition {
  columnOf(projection, column);
  return sql<boolean>`${sql.id(name)}.${columnRef(projection, column)}`;
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
  const found = compared(projection, column, sign, boundValue(projection, column, value));
  return withNulls ? orNull(projection, column, found) : found;
}

type SignOfNulls = readonly [sign: Sign, withNulls: boolean];

const signs: Readonly<Record<ComparisonOperator, { readonly plain: SignOfNulls; readonly negated: SignOfNulls }>> = {
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
  const found = negated
    ? sql<boolean>`${columnRef(projection, column)} <> all(${list})`
    : comparedWithAny(projection, column, list);
  return namesNull !== negated ? orNull(projection, column, found) : found;
}

function textual(projection: Projection, { kind, column, value }: TextFilter, negated: boolean): Condition {
  const search = textSearch(kind);
  if (search.index === 'search') {
    const pattern = isSlot(value) ? value : search.pattern(value);
    return alike(projection, column, boundValue(projection, column, pattern), search.ignoreCase, negated);
  }
  const [start, end] = isRange(value) ? [value.start, value.end] : [value, search.end(value)];
  const to = end === undefined ? undefined : boundValue(projection, column, end);
  return range(projection, column, boundValue(projection, column, start), to, negated);
}

// A text filter with parameters has them in place of its value.
function isSlot(value: unknown): value is Placeholder {
  return value instanceof Placeholder;
}

function isRange(value: unknown): value is RangeSlots {
  return value instanceof RangeSlots;
}

/** As a range, not as a pattern: no wildcards need escaping, and an index supports it with any plan. */
function range(
  projection: Projection,
  column: string,
  from: RawBuilder<unknown>,
  to: RawBuilder<unknown> | undefined,
  negated: boolean,
): Condition {
  const than = (sign: Sign, value: RawBuilder<unknown>) => compared(projection, column, sign, value);
  if (!negated) return allOf([than('>=', from), ...(to ? [than('<', to)] : [])]);
  return orNull(projection, column, anyOf([than('<', from), ...(to ? [than('>=', to)] : [])]));
}

/** The index knows texts in upper case only. A condition that depends on the case has that one too, for the index. */
function alike(
  projection: Projection,
  column: string,
  pattern: RawBuilder<unknown>,
  ignoreCase: boolean,
  negated: boolean,
): Condition {
  const ref = columnRef(projection, column);
  const folded = sql<boolean>`${caseInsensitiveRef(ref)} like ${caseInsensitiveRef(pattern)}`;
  if (ignoreCase) return held(projection, column, folded, negated);
  const exact = sql<boolean>`${ref} like ${pattern}`;
  return held(projection, column, negated ? exact : sql<boolean>`(${folded} and ${exact})`, negated);
}

/** A condition that is unknown for a null, or its complement. */
function held(projection: Projection, column: string, found: Condition, negated: boolean): Condition {
  return negated ? orNull(projection, column, sql<boolean>`not ${found}`) : found;
}

function nullness(projection: Projection, column: string, isNull: boolean): Condition {
  const ref = placeRef(projection, column);
  return isNull ? sql<boolean>`${ref} is null` : sql<boolean>`${ref} is not null`;
}

function orNull(projection: Projection, column: string, found: Condition): Condition {
  if (!columnOf(projection, column).flags.nullable) return found;
  return sql<boolean>`(${found} or ${nullness(projection, column, true)})`;
}

function joined(conditions: readonly Condition[], separator: RawBuilder<unknown>, empty: Condition): Condition {
  const [first, ...others] = conditions;
  if (first === undefined) return empty;
  return others.length === 0 ? first : sql<boolean>`(${sql.join([...conditions], separator)})`;
}
