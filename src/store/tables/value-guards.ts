import type { Column } from '../../projections/columns/column.ts';

/**
 * Wraps a SQL expression: its value is refused if PostgreSQL would round or truncate it to fit the column, or if a row could not be read
 * back in canonical form. Values that PostgreSQL refuses itself (nulls, overflows, unknown enum values) are not checked.
 *
 * @param value the expression
 * @param mostBytes the maximum of bytes for an indexed text
 * @param name the column, for the message
 */
export function guarded(column: Column | undefined, value: string, name: string, mostBytes?: number): string {
  const rule = column && ruleOf(column, value, mostBytes);
  if (!rule) return value;
  const problem = `evolveSql returns a value for '${name}' that does not fit: expected ${rule.expected}`.replaceAll(
    "'",
    "''",
  );
  return `case when ${value} is null or ${rule.fits} then ${value} else refold.refuse_value(${value}, '${problem}') end`;
}

function ruleOf(
  { type }: Column,
  value: string,
  mostBytes: number | undefined,
): { fits: string; expected: string } | null {
  switch (type.kind) {
    case 'decimal':
      return {
        // The written scale is stored with the value; the minimum scale must be computed.
        fits: `scale(${value}::numeric) <= ${type.scale} or min_scale(${value}::numeric) <= ${type.scale}`,
        expected: `a decimal with at most ${type.scale} digits after the point (round it, or widen the column)`,
      };
    case 'integer':
    case 'bigint':
      return { fits: `${value}::bigint = ${value}`, expected: 'a whole number' };
    case 'date':
      return {
        fits: `${value}::date between '0001-01-01' and '9999-12-31'`,
        expected: 'a date from year 1 to 9999',
      };
    case 'timestamptz':
      return {
        fits: `${value}::timestamptz between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00'`,
        expected: 'a time from year 1 to 9999',
      };
    case 'text':
      return mostBytes === undefined
        ? null
        : {
            fits: `octet_length(${value}::text) <= ${mostBytes}`,
            expected: `at most ${mostBytes} bytes in an indexed text`,
          };
    case 'boolean':
    case 'uuid':
    case 'enum':
    case 'json':
    case 'object':
    case 'list':
      return null;
  }
}
