import { closest } from '../../events/closest.ts';
import { type Column, isContainer } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import { comparedColumn, operatorsOf, type WhereInput } from '../types/filter-types.ts';
import { directionNames, type OrderInput } from '../types/order.ts';
import { inputValue } from '../values/column-kinds.ts';

/**
 * Checks a `where` that an application's resolver wrote, and converts values of rows to the form in which clients send them. GraphQL checks what
 * clients send. Undefined is refused: otherwise a value that is missing would turn a filter into a read of the whole table.
 *
 * @throws Error, which clients see masked
 */
export function ownWhere(projection: Projection, where: WhereInput, versions: VersionMap, path = 'where'): WhereInput {
  const converted = (part: unknown, at: string) => ownWhere(projection, part as WhereInput, versions, at); // a filter of the same rows
  return mapValues(projection, where, path, (name, value, at) => {
    if (value === null) return null; // refused as for clients, where the filter is read
    if (name === 'and' || name === 'or')
      return (value as readonly unknown[]).map((part, index) => converted(part, `${at}[${index}]`));
    if (name === 'not') return converted(value, at);
    if (Object.hasOwn(projection.relations, name))
      return ownRelated(projection, name, value as WhereInput, versions, at);
    return ownOperators(projection, name, value as WhereInput, at);
  });
}

function ownRelated(projection: Projection, name: string, where: WhereInput, versions: VersionMap, path: string) {
  const relation = projection.relations[name];
  const target = relation && versions.served.get(relation.target)?.projection;
  if (!target) return where; // refused where the filter is read
  if (relation.kind === 'one') return ownWhere(target, where, versions, path);
  return mapValues(projection, where, path, (quantifier, part, at) => {
    if (!quantifiers.includes(quantifier))
      throw misused(projection, `'${at}' is not a quantifier.${closest(quantifier, quantifiers)}`);
    return part === null ? null : ownWhere(target, part as WhereInput, versions, at);
  });
}

const quantifiers = ['some', 'every', 'none'];

function ownOperators(projection: Projection, name: string, operators: WhereInput, path: string): WhereInput {
  const column = columnOf(projection, name, path);
  const known: readonly string[] = operatorsOf(column);
  const compared = comparedColumn(column);
  return mapValues(projection, operators, path, (operator, value) => {
    if (!known.includes(operator))
      throw misused(projection, `'${name}' can't be compared by '${operator}'.${closest(operator, known)}`);
    if (!compared || operator === 'isNull') return value;
    return Array.isArray(value) ? value.map((one) => ownValue(compared, one)) : ownValue(compared, value);
  });
}

function mapValues(
  projection: Projection,
  given: WhereInput,
  path: string,
  map: (name: string, value: unknown, at: string) => unknown,
): WhereInput {
  if (typeof given !== 'object' || given === null)
    throw misused(projection, `'${path}' is ${String(given)}; use {} where there is no condition.`);
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const at = `${path}.${name}`;
      if (value === undefined) throw misused(projection, `'${at}' is undefined; leave it out.`);
      return [name, map(name, value, at)];
    }),
  );
}

/** Accepts a value in the form of clients or of rows. A fraction that is a number has lost its exactness: it stays, and is refused later. */
export function ownValue(column: Column, value: unknown): unknown {
  if (value === null || (typeof value === 'number' && !Number.isSafeInteger(value))) return value;
  return inputValue(column, value);
}

/** Checks an `orderBy` that an application's resolver wrote. @throws Error, which clients see masked */
export function checkOwnOrder(projection: Projection, orderBy: readonly OrderInput[]): void {
  for (const [name, direction] of orderBy.flatMap((entry) => Object.entries(entry))) {
    const column = columnOf(projection, name, `orderBy.${name}`);
    if (isContainer(column)) throw misused(projection, `'${name}' has no order: it is a list, an object or JSON.`);
    if (!directionNames.includes(String(direction)))
      throw misused(projection, `'orderBy.${name}' is '${direction}'.${closest(String(direction), directionNames)}`);
  }
}

/** Checks names of columns that an application's resolver wrote. @throws Error, which clients see masked */
export function checkOwnColumns(projection: Projection, option: string, columns: readonly string[]): void {
  for (const name of columns) columnOf(projection, name, option);
}

function columnOf(projection: Projection, name: string, path: string) {
  const column = Object.hasOwn(projection.columns, name) ? projection.columns[name] : undefined;
  if (column) return column;
  throw misused(
    projection,
    `'${path}': there is no column '${name}'.${closest(name, Object.keys(projection.columns))}`,
  );
}

/** Not a RefoldError: the message is for the application's developers, so it is logged and masked. */
export function misused({ id }: Projection, problem: string): Error {
  return new Error(`readModel of ${id}: ${problem}`);
}
