import { type RawBuilder, sql } from 'kysely';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { ComparisonOperator, RelatedFilter, RowFilter } from '../../projections/queries/row-query.ts';
import { afterPrefix, partPattern } from '../../projections/queries/text-patterns.ts';
import {
  boundArray,
  boundJson,
  boundValue,
  columnOf,
  columnRef,
  comparableRef,
  foldedRef,
} from '../tables/row-values.ts';
import { TextSlots } from '../tables/slots.ts';

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
    case 'startsWith':
      return prefix(projection, filter.column, filter.value, negated);
    case 'contains':
      return part(projection, filter.column, filter.value, negated);
    case 'ilike': {
      const pattern = boundValue(projection, filter.column, filter.pattern);
      return held(projection, filter.column, like(projection, filter.column, pattern), negated);
    }
    case 'holds': {
      const inside = sql<boolean>`${columnRef(projection, filter.column)} @> ${boundJson(projection, filter.column, filter.value)}`;
      return held(projection, filter.column, inside, negated);
    }
    case 'isNull':
      return nullness(projection, filter.column, filter.isNull !== negated);
    case 'related':
      return related(place, filter, negated);
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
  const joined = columns.map(([own, other]) => sql<boolean>`${qualified(inner, other)} = ${qualified(place, own)}`);
  // `every` searches for a row that fails the filter. Without a filter no row fails.
  const breaks = quantifier === 'every';
  const held = filter === null ? (breaks ? never : always) : condition(inner, filter, breaks);
  const exists = sql<boolean>`exists (
    select from ${sql.id(place.readSchema, projection.tableName)} as ${sql.id(inner.name)}
    where ${allOf([...joined, held])}
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

/** As a range, not as a pattern: no wildcards need escaping, and an index supports it with any plan. */
function prefix(projection: Projection, column: string, value: string, negated: boolean): Condition {
  const ref = comparableRef(projection, column);
  const [start, end] = textsOf(value, afterPrefix);
  const from = boundValue(projection, column, start);
  const to = end === undefined ? undefined : boundValue(projection, column, end);
  if (!negated) return to === undefined ? sql`${ref} >= ${from}` : sql`(${ref} >= ${from} and ${ref} < ${to})`;
  return orNull(
    projection,
    column,
    to === undefined ? sql`${ref} < ${from}` : sql`(${ref} < ${from} or ${ref} >= ${to})`,
  );
}

/** Matches any part of a text. The pattern adds no condition, but lets PostgreSQL use the index. */
function part(projection: Projection, column: string, value: string, negated: boolean): Condition {
  const [text, pattern] = textsOf(value, partPattern);
  const alike = like(projection, column, boundValue(projection, column, pattern));
  const found = sql<boolean>`strpos(${columnRef(projection, column)}, ${boundValue(projection, column, text)}) > 0`;
  return held(projection, column, negated ? found : sql<boolean>`(${alike} and ${found})`, negated);
}

/** A text and a value derived from it: the values themselves, or their parameters. */
function textsOf(value: string | TextSlots, other: (text: string) => string | undefined): readonly [unknown, unknown] {
  return value instanceof TextSlots ? [value.text, value.other] : [value, other(value)];
}

function like(projection: Projection, column: string, pattern: RawBuilder<unknown>): Condition {
  return sql<boolean>`${foldedRef(columnRef(projection, column))} like ${foldedRef(pattern)}`;
}

/** A condition that is unknown for a null, or its complement. */
function held(projection: Projection, column: string, found: Condition, negated: boolean): Condition {
  return negated ? orNull(projection, column, sql<boolean>`not ${found}`) : found;
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
