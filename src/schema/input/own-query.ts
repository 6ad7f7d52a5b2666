import { closest } from '../../events/closest.ts';
import { isContainer } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import { operatorsOf, type WhereInput } from '../types/filter-types.ts';
import { directionNames, type OrderInput } from '../types/order.ts';

/**
 * Checks a `where` that an application's resolver wrote. GraphQL checks those that clients send. Undefined is refused: otherwise a value that is
 * missing would turn a filter into a read of the whole table.
 *
 * @throws Error, which clients see masked
 */
export function checkOwnWhere(projection: Projection, where: WhereInput, versions: VersionMap, path = 'where'): void {
  for (const [name, value] of Object.entries(where)) {
    const at = `${path}.${name}`;
    if (value === undefined) throw misused(projection, `'${at}' is undefined; leave it out.`);
    if (value === null) continue; // refused as for clients, where the filter is read
    if (name === 'and' || name === 'or')
      for (const [index, part] of (value as readonly WhereInput[]).entries())
        checkOwnWhere(projection, part, versions, `${at}[${index}]`);
    else if (name === 'not') checkOwnWhere(projection, value as WhereInput, versions, at);
    else if (Object.hasOwn(projection.relations, name)) checkRelated(projection, name, value, versions, at);
    else checkOperators(projection, name, value as WhereInput, at);
  }
}

function checkRelated(projection: Projection, name: string, value: unknown, versions: VersionMap, path: string): void {
  const relation = projection.relations[name];
  const target = relation && versions.served.get(relation.target)?.projection;
  if (!target) return; // refused where the filter is read
  const parts = relation.kind === 'one' ? [['', value] as const] : Object.entries(value as WhereInput);
  for (const [quantifier, part] of parts) {
    const at = quantifier === '' ? path : `${path}.${quantifier}`;
    if (!['', 'some', 'every', 'none'].includes(quantifier))
      throw misused(projection, `'${at}' is not a quantifier; use 'some', 'every' or 'none'.`);
    if (part === undefined) throw misused(projection, `'${at}' is undefined; leave it out.`);
    if (part !== null) checkOwnWhere(target, part as WhereInput, versions, at);
  }
}

function checkOperators(projection: Projection, name: string, operators: WhereInput, path: string): void {
  const column = columnOf(projection, name, path);
  const known: readonly string[] = operatorsOf(column);
  for (const [operator, value] of Object.entries(operators)) {
    if (value === undefined) throw misused(projection, `'${path}.${operator}' is undefined; leave it out.`);
    if (!known.includes(operator))
      throw misused(projection, `'${name}' can't be compared by '${operator}'.${closest(operator, known)}`);
  }
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
