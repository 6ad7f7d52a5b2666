import type { Column } from '../projections/column.ts';
import type { Projection } from '../projections/projection.ts';
import type { RowFilter } from '../projections/row-query.ts';
import { badInput, canonicalInput } from './canonical-input.ts';
import type { WhereInput } from './filter-types.ts';

// More than a person's interface asks for, and few enough for PostgreSQL to plan within milliseconds.
const mostConditions = 100;
const deepest = 10;

/**
 * A `where` as data. Null inside of it is refused: a variable that a client forgot must not turn a filter into the whole table.
 *
 * @throws RefoldError `BAD_USER_INPUT`
 */
export function rowFilter(projection: Projection, where: WhereInput | null | undefined): RowFilter | null {
  if (where === null || where === undefined) return null;
  const budget = { conditions: mostConditions };
  return allOf(conditionsOf(projection, where, 'where', 1, budget));
}

interface Budget {
  conditions: number;
}

function conditionsOf(
  projection: Projection,
  where: WhereInput,
  path: string,
  depth: number,
  budget: Budget,
): readonly RowFilter[] {
  if (depth > deepest) throw badInput(`'where' is nested more than ${deepest} levels deep.`);
  const nested = (part: unknown, at: string) =>
    allOf(conditionsOf(projection, part as WhereInput, at, depth + 1, budget)); // GraphQL has checked its shape
  return Object.entries(where).flatMap(([name, value]): readonly RowFilter[] => {
    const at = `${path}.${name}`;
    if (value === undefined) return [];
    if (value === null) throw badInput(`'${at}' is null; leave it out instead.`);
    switch (name) {
      case 'and':
      case 'or':
        return [
          { kind: name, filters: (value as unknown[]).map((part, index) => nested(part, `${at}[${index}]`)) }, // a list of filters
        ];
      case 'not':
        return [{ kind: 'not', filter: nested(value, at) }];
      default:
        return comparisonsOf(projection, name, value as WhereInput, at, budget); // the column's operators
    }
  });
}

function comparisonsOf(
  projection: Projection,
  name: string,
  operators: WhereInput,
  path: string,
  budget: Budget,
): readonly RowFilter[] {
  const column = projection.columns[name] as Column; // the filter's type has a field for each of the columns only
  const value = (given: unknown) => canonicalInput(column, name, given);
  return Object.entries(operators)
    .filter(([, given]) => given !== undefined)
    .map(([operator, given]): RowFilter => {
      if (--budget.conditions < 0) throw badInput(`'where' has more than ${mostConditions} conditions.`);
      if (given === null) throw badInput(`'${path}.${operator}' is null; ${insteadOfNull(column)}`);
      switch (operator) {
        case 'in':
          return { kind: 'in', column: name, values: (given as unknown[]).map(value) }; // a list, says its type
        case 'notIn':
          return { kind: 'not', filter: { kind: 'in', column: name, values: (given as unknown[]).map(value) } }; // a list, says its type
        case 'startsWith':
          return { kind: 'startsWith', column: name, value: given as string }; // says its type
        case 'isNull':
          return { kind: 'isNull', column: name, isNull: given as boolean }; // says its type
        case 'eq':
        case 'ne':
        case 'lt':
        case 'lte':
        case 'gt':
        case 'gte':
          return { kind: 'compare', column: name, operator, value: value(given) };
        default:
          throw badInput(`'${path}.${operator}' is no operator.`);
      }
    });
}

function insteadOfNull(column: Column): string {
  return column.flags.nullable ? "leave it out, or use 'isNull'." : 'leave it out instead.';
}

function allOf(filters: readonly RowFilter[]): RowFilter {
  const [first, ...others] = filters;
  return first && others.length === 0 ? first : { kind: 'and', filters };
}
