import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import { type RelatedFilter, type RowFilter, relatedTarget } from '../../projections/queries/row-query.ts';
import { isTextOperator, textSearch } from '../../projections/queries/text-operators.ts';
import { comparedColumn, type WhereInput } from '../types/filter-types.ts';
import { badInput } from '../values/canonical-input.ts';
import { columnOperator } from '../values/filter-operators.ts';
import { checkPattern, partInside } from '../values/inside-input.ts';

// More than a user interface needs, and few enough for PostgreSQL to plan within milliseconds.
const maxConditions = 100;
const deepest = 10;

/**
 * Parses a `where`. Null inside it is refused: otherwise a missing variable would turn a filter into a read of the whole table.
 *
 * @throws RefoldError `BAD_USER_INPUT`
 */
export function rowFilter(
  projection: Projection,
  where: WhereInput | null | undefined,
  versions?: VersionMap,
): RowFilter | null {
  if (where === null || where === undefined) return null;
  return allOf(
    conditionsOf(projection, where, 'where', 1, { conditions: maxConditions, related: maxRelated, versions }),
  );
}

interface Budget {
  conditions: number;
  related: number;
  /** The targets of relations; if it is undefined, filters cannot follow relations. */
  readonly versions: VersionMap | undefined;
}

// Each is a join; a user interface needs only a few.
const maxRelated = 5;

function conditionsOf(
  projection: Projection,
  where: WhereInput,
  path: string,
  depth: number,
  budget: Budget,
): readonly RowFilter[] {
  if (depth > deepest) throw badInput(`'where' is nested more than ${deepest} levels deep.`);
  const nested = (part: unknown, at: string) =>
    allOf(conditionsOf(projection, part as WhereInput, at, depth + 1, budget)); // GraphQL has checked the shape
  return Object.entries(where).flatMap(([name, value]): readonly RowFilter[] => {
    const at = `${path}.${name}`;
    if (value === undefined) return [];
    if (value === null) throw badInput(`'${at}' is null; leave it out instead.`);
    switch (name) {
      case 'and':
      case 'or':
        return [
          { kind: name, filters: (value as unknown[]).map((part, index) => nested(part, `${at}[${index}]`)) }, // typed as a list of filters
        ];
      case 'not':
        return [{ kind: 'not', filter: nested(value, at) }];
      default:
        if (Object.hasOwn(projection.relations, name))
          return relatedOf(projection, name, value as WhereInput, at, depth, budget); // the target's filter, possibly with a quantifier
        return comparisonsOf(projection, name, value as WhereInput, at, budget); // the column's operators
    }
  });
}

/** Parses a relation filter: `{ customer: { … } }` of a relation to one, `{ carts: { some: { … } } }` of a relation to many. */
function relatedOf(
  projection: Projection,
  name: string,
  where: WhereInput,
  path: string,
  depth: number,
  budget: Budget,
): readonly RowFilter[] {
  const relation = projection.relations[name];
  const other = relation && budget.versions?.served.get(relation.target)?.projection;
  if (!relation || !other) throw badInput(`'${path}' can't be filtered by here.`);
  const columns =
    relation.kind === 'one'
      ? relation.from.map((from, index) => [from, other.keyColumns[index] as string] as const) // both lists have the same length, checked at startup
      : [[relation.from, relation.to] as const];
  const quantified = relation.kind === 'one' ? { some: where } : where;
  if (!isGiven(quantified)) throw badInput(`'${path}' has none of some, every and none; leave it out instead.`);
  return Object.entries(quantified)
    .filter(([, given]) => given !== undefined)
    .map(([quantifier, given]): RowFilter => {
      if (--budget.related < 0) throw badInput(`'where' follows more than ${maxRelated} relations.`);
      if (given === null) throw badInput(`'${path}.${quantifier}' is null; leave it out instead.`);
      const filter = allOf(conditionsOf(other, given as WhereInput, path, depth + 1, budget)); // the target's filter
      return {
        kind: 'related',
        quantifier: quantifier as RelatedFilter['quantifier'], // by its type
        target: relatedTarget(other),
        columns,
        filter,
      };
    });
}

function comparisonsOf(
  projection: Projection,
  name: string,
  operators: WhereInput,
  path: string,
  budget: Budget,
): readonly RowFilter[] {
  const column = projection.columns[name] as Column; // the filter type has fields only for columns
  const spend = (conditions: number) => {
    budget.conditions -= conditions;
    if (budget.conditions < 0) throw badInput(`'where' has more than ${maxConditions} conditions.`);
  };
  if (!isGiven(operators)) throw badInput(`'${path}' has no operator; leave the condition out instead.`);
  return Object.entries(operators)
    .filter(([, given]) => given !== undefined)
    .map(([operator, given]): RowFilter => {
      spend(1);
      if (given === null) throw badInput(`'${path}.${operator}' is null; ${insteadOfNull(column)}`);
      if (operator === 'contains' && !comparedColumn(column))
        return { kind: 'holds', column: name, value: partInside(column, name, given) };
      if (isTextOperator(operator)) {
        const [text, search] = [given as string, textSearch(operator)]; // by its type
        if (search.index === 'search') checkPattern(search.pattern(text), `${path}.${operator}`);
        return { kind: operator, column: name, value: text };
      }
      const meant = columnOperator(operator);
      if (!meant) throw badInput(`'${path}.${operator}' is not an operator.`);
      const filter = meant.filter({ column, name, path: `${path}.${operator}` }, given);
      // The operator has counted as one condition already.
      if (filter.kind === 'and' || filter.kind === 'or') spend(Math.max(0, filter.filters.length - 1));
      return filter;
    });
}

/** `JSON.stringify` leaves out a member without a value. Without all of them, a condition would hold for all rows. */
function isGiven(members: WhereInput): boolean {
  return Object.values(members).some((given) => given !== undefined);
}

function insteadOfNull(column: Column): string {
  return column.flags.nullable ? "leave it out, or use 'isNull'." : 'leave it out instead.';
}

function allOf(filters: readonly RowFilter[]): RowFilter {
  const [first, ...others] = filters;
  return first && others.length === 0 ? first : { kind: 'and', filters };
}
