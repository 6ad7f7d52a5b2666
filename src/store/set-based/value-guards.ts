import type { Column } from '../../projections/columns/column.ts';
import { kindInSql } from '../columns/column-sql.ts';

/**
 * Wraps a SQL expression: its value is refused if PostgreSQL would round or truncate it to fit the column, or if a row could not be read
 * back in canonical form. Values that PostgreSQL refuses itself (nulls, overflows, unknown enum values) are not checked.
 *
 * @param value the expression
 * @param maxTextBytes the maximum of bytes for an indexed text
 * @param name the column, for the message
 */
export function guarded(column: Column | undefined, value: string, name: string, maxTextBytes?: number): string {
  const rule = column && kindInSql(column.type).rule?.(value, maxTextBytes);
  if (!rule) return value;
  const problem = `evolveSql returns a value for '${name}' that does not fit: expected ${rule.expected}`.replaceAll(
    "'",
    "''",
  );
  return `case when ${value} is null or ${rule.fits} then ${value} else refold.refuse_value(${value}, '${problem}') end`;
}
