import type { Column } from '../../projections/columns/column.ts';
import type { ComparisonOperator, RowFilter } from '../../projections/queries/row-query.ts';
import { type TextOperator, textOperators } from '../../projections/queries/text-operators.ts';
import { badInput, canonicalInput } from './canonical-input.ts';
import { itemInside } from './inside-input.ts';

/** A column that is compared, and where in the `where` that is. */
export interface Compared {
  readonly name: string;
  readonly column: Column;
  readonly path: string;
}

/** An operator of `where` for a column. */
export interface ColumnOperator {
  readonly description: string;
  /** What it is given: a value of the column, or an item of a list; several of them; or true or false. */
  readonly takes: 'value' | 'values' | 'boolean';
  /** What it means. `given` has the type that GraphQL has checked. */
  filter(compared: Compared, given: unknown): RowFilter;
}

/** The operators apart from those on texts (`text-operators.ts`). GraphQL's inputs and the parser of `where` follow from an entry. */
const columnOperators = {
  eq: comparison('eq', 'Is equal to this value.'),
  ne: comparison('ne', 'Is not equal to this value. Also matches null.'),
  in: {
    description: 'Is one of these values. An empty list matches no rows.',
    takes: 'values',
    filter: (compared, given) => oneOf(compared, given),
  },
  notIn: {
    description: 'Is none of these values. Also matches null. An empty list matches all rows.',
    takes: 'values',
    filter: (compared, given) => ({ kind: 'not', filter: oneOf(compared, given) }),
  },
  lt: comparison('lt', 'Is less than this value.'),
  lte: comparison('lte', 'Is less than or equal to this value.'),
  gt: comparison('gt', 'Is greater than this value.'),
  gte: comparison('gte', 'Is greater than or equal to this value.'),
  between: {
    description: 'Is from the first to the second of these two values, both included.',
    takes: 'values',
    filter(compared, given) {
      const ends = given as readonly unknown[]; // typed as a list
      if (ends.length !== 2)
        throw badInput(`'${compared.path}' expects two values, from the first to the second; found ${ends.length}.`);
      const [from, to] = ends;
      return { kind: 'and', filters: [compare(compared, 'gte', from), compare(compared, 'lte', to)] };
    },
  },
  has: {
    description: 'Contains this item.',
    takes: 'value',
    filter: (compared, given) => holds(compared, given),
  },
  hasEvery: {
    description: 'Contains all of these items. An empty list matches all rows.',
    takes: 'values',
    filter: (compared, given) => ({ kind: 'and', filters: eachHeld(compared, given) }),
  },
  hasSome: {
    description: 'Contains at least one of these items. An empty list matches no rows.',
    takes: 'values',
    filter: (compared, given) => ({ kind: 'or', filters: eachHeld(compared, given) }),
  },
  isNull: {
    description: 'True matches null. False matches all values that are not null.',
    takes: 'boolean',
    filter: ({ name }, given) => ({ kind: 'isNull', column: name, isNull: given as boolean }), // by its type
  },
} as const satisfies Readonly<Record<string, ColumnOperator>>;

/** The operators that `where` offers for a column. */
export type FilterOperator = keyof typeof columnOperators | TextOperator;

/** Undefined for operators on texts, and for what is no operator. */
export function columnOperator(name: string): ColumnOperator | undefined {
  return Object.hasOwn(columnOperators, name) ? columnOperators[name as keyof typeof columnOperators] : undefined; // one of its own names
}

export function operatorDescription(operator: FilterOperator): string {
  return { ...columnOperators, ...textOperators }[operator].description;
}

function comparison(operator: ComparisonOperator, description: string): ColumnOperator {
  return { description, takes: 'value', filter: (compared, given) => compare(compared, operator, given) };
}

function compare({ column, name }: Compared, operator: ComparisonOperator, given: unknown): RowFilter {
  return { kind: 'compare', column: name, operator, value: canonicalInput(column, name, given) };
}

function oneOf({ column, name }: Compared, given: unknown): RowFilter {
  const values = (given as readonly unknown[]).map((one) => canonicalInput(column, name, one)); // typed as a list
  return { kind: 'in', column: name, values };
}

function holds({ column, name }: Compared, item: unknown): RowFilter {
  return { kind: 'holds', column: name, value: [itemInside(column, name, item)] };
}

function eachHeld(compared: Compared, given: unknown): readonly RowFilter[] {
  return (given as readonly unknown[]).map((item) => holds(compared, item)); // typed as a list
}
