import { isDecimal } from '../../../src/projections/columns/decimal.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import type {
  Cursor,
  PageQuery,
  RelatedFilter,
  RowFilter,
  RowOrder,
  RowPage,
} from '../../../src/projections/queries/row-query.ts';

/** The rows of all tables, for conditions across relations. */
export type Tables = (projection: Projection) => readonly Row[];

const oneTable: Tables = () => {
  throw new TypeError('one table only');
};

/** Evaluates a filter without SQL. */
export function matches(filter: RowFilter | null, row: Row, tables: Tables = oneTable): boolean {
  if (filter === null) return true;
  switch (filter.kind) {
    case 'and':
      return filter.filters.every((part) => matches(part, row, tables));
    case 'or':
      return filter.filters.some((part) => matches(part, row, tables));
    case 'not':
      return !matches(filter.filter, row, tables);
    case 'in':
      return filter.values.some((value) => compareValues(value, row[filter.column]) === 0);
    case 'startsWith':
      return typeof row[filter.column] === 'string' && String(row[filter.column]).startsWith(filter.value);
    case 'endsWith':
      return typeof row[filter.column] === 'string' && String(row[filter.column]).endsWith(filter.value);
    case 'contains':
      return typeof row[filter.column] === 'string' && String(row[filter.column]).indexOf(filter.value) >= 0;
    case 'ilike':
      return typeof row[filter.column] === 'string' && likeRegExp(filter.value).test(upper(row[filter.column]));
    case 'holds':
      return row[filter.column] !== null && within(plainJson(row[filter.column]), filter.value, true);
    case 'isNull':
      return (row[filter.column] === null) === filter.isNull;
    case 'related':
      return leadsTo(filter, row, tables);
    case 'compare':
      return compares(filter.operator, row[filter.column], filter.value);
  }
}

/** A null matches no related row. */
function leadsTo({ quantifier, target, columns, filter }: RelatedFilter, row: Row, tables: Tables): boolean {
  const others = tables(target.projection).filter((other) =>
    columns.every(([own, theirs]) => row[own] !== null && compareValues(row[own], other[theirs]) === 0),
  );
  if (quantifier === 'every') return others.every((other) => matches(filter, other, tables));
  return others.some((other) => matches(filter, other, tables)) === (quantifier === 'some');
}

function upper(value: unknown): string {
  return String(value).toUpperCase();
}

function likeRegExp(pattern: string): RegExp {
  const source = upper(pattern).replace(/\\?./gsu, (part) => {
    if (part === '%') return '.*';
    if (part === '_') return '.';
    return `\\u{${part.codePointAt(part.startsWith('\\') ? 1 : 0)?.toString(16)}}`;
  });
  return new RegExp(`^${source}$`, 'su');
}

function plainJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part)));
}

/** The rules of jsonb's containment, as PostgreSQL's documentation describes them. */
function within(whole: unknown, part: unknown, top = false): boolean {
  if (Array.isArray(part)) return Array.isArray(whole) && part.every((one) => whole.some((item) => within(item, one)));
  if (typeof part === 'object' && part !== null) {
    if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return false;
    const fields = new Map(Object.entries(whole));
    return Object.entries(part).every(([name, one]) => fields.has(name) && within(fields.get(name), one));
  }
  if (top && Array.isArray(whole)) return whole.includes(part);
  return whole === part;
}

export function compares(operator: string, value: unknown, bound: unknown): boolean {
  const order = compareValues(value, bound);
  if (operator === 'eq') return order === 0;
  if (operator === 'ne') return order !== 0;
  if (order === undefined || value === null) return false;
  if (operator === 'lt') return order < 0;
  if (operator === 'lte') return order <= 0;
  return operator === 'gt' ? order > 0 : order >= 0;
}

/** Undefined if exactly one of them is null. */
export function compareValues(a: unknown, b: unknown): number | undefined {
  if (a === null && b === null) return 0;
  if (a === null || b === null) return undefined;
  if (isDecimal(a) && isDecimal(b)) return a.cmp(b);
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(comparable(a), comparable(b));
  const [x, y] = [a as number, b as number]; // numbers, bigints and booleans compare alike
  return x < y ? -1 : x > y ? 1 : 0;
}

// Of two times, the one with fewer digits is the earlier one, but 'Z' sorts after the digits.
function comparable(text: string): Buffer {
  return Buffer.from(/^\d{4}-\d{2}-\d{2}T.*Z$/.test(text) ? text.slice(0, -1) : text);
}

export function naivePage(
  projection: Projection,
  rows: readonly Row[],
  query: PageQuery,
  tables: Tables = oneTable,
): RowPage {
  const order = totalOrder(projection, query.orderBy);
  const cursor = cursorOf(projection, query.orderBy);
  const [after, before] = [query.after, query.before].map((given) =>
    given?.map((value, index) => place(projection, String(order[index]?.column), value)),
  );
  const inRange = sorted(projection, rows, query, tables).filter(
    (row) =>
      (!after || compareByOrder(order, cursor(row), after) > 0) &&
      (!before || compareByOrder(order, cursor(row), before) < 0),
  );
  const forward = query.direction === 'forward';
  const more = inRange.length > query.limit;
  return {
    rows: forward ? inRange.slice(0, query.limit) : inRange.slice(Math.max(0, inRange.length - query.limit)),
    hasNextPage: forward ? more : query.before !== null,
    hasPreviousPage: forward ? query.after !== null : more,
  };
}

/** The whole list, sorted. */
export function sorted(
  projection: Projection,
  rows: readonly Row[],
  query: { readonly where: RowFilter | null; readonly orderBy: readonly RowOrder[] },
  tables: Tables = oneTable,
): Row[] {
  const order = totalOrder(projection, query.orderBy);
  const cursor = cursorOf(projection, query.orderBy);
  return rows
    .filter((row) => matches(query.where, row, tables))
    .sort((a, b) => compareByOrder(order, cursor(a), cursor(b)));
}

export function cursorOf(projection: Projection, orderBy: readonly RowOrder[]): (row: Row) => Cursor {
  const columns = totalOrder(projection, orderBy).map(({ column }) => column);
  return (row) => columns.map((name) => place(projection, name, row[name]));
}

/** A long text is ordered by its first 256 characters. */
function place({ columns }: Projection, name: string, value: unknown): unknown {
  const { long, search, unique } = columns[name]?.flags ?? {};
  return (long || search) && !unique && typeof value === 'string' ? Array.from(value).slice(0, 256).join('') : value;
}

function totalOrder(projection: Projection, orderBy: readonly RowOrder[]): readonly RowOrder[] {
  return [...orderBy, ...projection.keyColumns.map((column) => ({ column, direction: 'asc', nulls: 'last' }) as const)];
}

function compareByOrder(order: readonly RowOrder[], a: Cursor, b: Cursor): number {
  for (const [index, { direction, nulls }] of order.entries()) {
    const [x, y] = [a[index], b[index]];
    if (x === null && y === null) continue;
    if (x === null || y === null) return (x === null) === (nulls === 'first') ? -1 : 1;
    const compared = compareValues(x, y) ?? 0;
    if (compared !== 0) return direction === 'asc' ? compared : -compared;
  }
  return 0;
}
