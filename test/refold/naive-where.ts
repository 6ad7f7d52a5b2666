import type { Column } from '../../src/projections/columns/column.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import type { Relation } from '../../src/projections/projection/relations.ts';
import { compares, compareValues } from '../store/queries/naive-rows.ts';
import { canonical, columnOf, type Input } from './naive-values.ts';

export interface View {
  rows(projection: Projection): readonly Row[];
  named(name: string): Projection;
  /** Only for cursors, which stand for places between rows, including rows that the viewer may not see. */
  all(projection: Projection): readonly Row[];
}

/** The rows that a row's relation leads to. A null leads to no row. */
export function ledTo(view: View, relation: Relation, row: Row): readonly Row[] {
  const target = view.named(relation.target);
  const pairs =
    relation.kind === 'one'
      ? relation.from.map((own, index) => [own, String(target.keyColumns[index])])
      : [[relation.from, relation.to]];
  return view
    .rows(target)
    .filter((other) =>
      pairs.every(
        ([own = '', theirs = '']) => row[own] !== null && compareValues(row[own] ?? null, other[theirs] ?? null) === 0,
      ),
    );
}

/** Whether a row matches a `where`. */
export function holds(view: View, projection: Projection, where: Input, row: Row): boolean {
  return Object.entries(where).every(([name, part]) => {
    if (part === undefined) return true;
    const within = (one: unknown) => holds(view, projection, one as Input, row); // of the same type
    if (name === 'and') return (part as Input[]).every(within);
    if (name === 'or') return (part as Input[]).some(within);
    if (name === 'not') return !within(part);
    const relation = projection.relations[name];
    if (!relation) return columnHolds(columnOf(projection, name), row[name], part as Input); // operators
    const target = view.named(relation.target);
    const others = ledTo(view, relation, row);
    const quantified = (relation.kind === 'one' ? { some: part } : part) as Record<string, Input>;
    return Object.entries(quantified).every(([quantifier, asked]) => {
      const right = others.filter((other) => holds(view, target, asked, other)).length;
      if (quantifier === 'every') return right === others.length;
      return quantifier === 'some' ? right > 0 : right === 0;
    });
  });
}

function columnHolds(column: Column, value: unknown, operators: Input): boolean {
  return Object.entries(operators).every(([operator, given]) => {
    const isOneOf = () => (given as unknown[]).some((one) => compareValues(value, canonical(column, one)) === 0);
    if (operator === 'in') return isOneOf();
    if (operator === 'notIn') return !isOneOf();
    if (operator === 'between') {
      const [from, to] = given as unknown[];
      return compares('gte', value, canonical(column, from)) && compares('lte', value, canonical(column, to));
    }
    if (operator === 'isNull') return (value === null) === given;
    if (operator === 'startsWith') return value !== null && String(value).startsWith(String(given));
    if (operator === 'endsWith') return value !== null && String(value).endsWith(String(given));
    return compares(operator, value, canonical(column, given));
  });
}

/** Refuses a condition that is null, or above the limits. */
export function checked(view: View, projection: Projection, where: unknown): Input {
  let related = 0;
  const check = (of: Projection, part: Input): void => {
    for (const [name, value] of Object.entries(part)) {
      if (value === null) throw new Error(`'${name}' is null`);
      if (name === 'and' || name === 'or') for (const one of value as Input[]) check(of, one);
      else if (name === 'not') check(of, value as Input);
      const relation = of.relations[name];
      if (!relation) continue;
      const asked = relation.kind === 'one' ? [value] : Object.values(value as Input);
      related += asked.length;
      for (const one of asked) check(view.named(relation.target), one as Input);
    }
  };
  if (where === null || where === undefined) return {};
  check(projection, where as Input);
  if (related > 5) throw new Error('more than 5 relations');
  return where as Input;
}
