import { isLargeAnswer } from '../../store/postgres/database-errors.ts';

// So a thousand rows become one in four steps, within a second or two of the poll's backoff.
const divisor = 8;

/**
 * How many rows to ask for at once, after a statement failed for so many: fewer if they have too many bytes. Undefined if fewer would fail, too,
 * because of one row.
 */
export function smallerPortion(rows: number, error: unknown): number | undefined {
  if (!isLargeAnswer(error)) return rows;
  return rows > 1 ? Math.ceil(rows / divisor) : undefined;
}
