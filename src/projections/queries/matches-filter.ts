import { isDecimal } from '../columns/decimal.ts';
import type { Row } from '../columns/row-codec.ts';
import { jsonHolds, storedJson } from './json-containment.ts';
import type { ComparisonOperator, RowFilter } from './row-query.ts';
import { type TextFilter, textOperators } from './text-operators.ts';

/** Whether a row in memory matches a filter. Returns what the filter's SQL returns for the same row in the table. */
export function matchesFilter(filter: RowFilter | null, row: Row): boolean {
  if (filter === null) return true;
  switch (filter.kind) {
    case 'and':
      return filter.filters.every((part) => matchesFilter(part, row));
    case 'or':
      return filter.filters.some((part) => matchesFilter(part, row));
    case 'not':
      return !matchesFilter(filter.filter, row);
    case 'in':
      return filter.values.some((value) => order(value, row[filter.column]) === 0);
    case 'holds': {
      const value = row[filter.column];
      return value !== null && jsonHolds(storedJson(value), filter.value);
    }
    case 'isNull':
      return (row[filter.column] === null) === filter.isNull;
    case 'related':
      throw new TypeError('A filter on related rows cannot be evaluated for a row in memory.'); // access rules have no such filters
    case 'compare':
      return compares(filter.operator, row[filter.column], filter.value);
    default:
      return matchesText(filter, row[filter.column]);
  }
}

function matchesText({ kind, value: text }: TextFilter, value: unknown): boolean {
  return typeof value === 'string' && textOperators[kind].matches(value, text);
}

function compares(operator: ComparisonOperator, value: unknown, bound: unknown): boolean {
  const ordered = order(value, bound);
  const comparable = ordered !== undefined && value !== null;
  switch (operator) {
    case 'eq':
      return ordered === 0;
    case 'ne':
      return ordered !== 0;
    case 'lt':
      return comparable && ordered < 0;
    case 'lte':
      return comparable && ordered <= 0;
    case 'gt':
      return comparable && ordered > 0;
    case 'gte':
      return comparable && ordered >= 0;
  }
}

/** Undefined if exactly one of them is null. */
function order(a: unknown, b: unknown): number | undefined {
  if (a === null && b === null) return 0;
  if (a === null || b === null) return undefined;
  if (isDecimal(a) && isDecimal(b)) return a.cmp(b);
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(bytesOf(a), bytesOf(b));
  const [x, y] = [a as number, b as number]; // numbers, bigints and booleans compare alike
  return x < y ? -1 : x > y ? 1 : 0;
}

// By code points, as in the tables. A time with fewer fraction digits is earlier, so 'Z', which sorts after the digits, is removed.
function bytesOf(text: string): Buffer {
  return Buffer.from(/^\d{4}-\d{2}-\d{2}T.*Z$/.test(text) ? text.slice(0, -1) : text);
}
