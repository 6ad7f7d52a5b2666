import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';
import type { Column } from '../columns/column.ts';
import { keyText, type Projection, type RowKey } from './projection.ts';

type Keyed = Pick<Projection, 'id' | 'codec' | 'columns' | 'keyColumns'>;

/** The key that JSON gives: one value, or a list of values in the order of the key's columns. @throws RefoldError `BAD_USER_INPUT` */
export function rowKeyOf({ id, codec, columns, keyColumns }: Keyed, given: unknown): RowKey {
  const values = Array.isArray(given) ? given : [given];
  try {
    if (values.length !== keyColumns.length) throw new TypeError(`expected ${keyColumns.join(', ')}`);
    return codec.normaliseKey(values.map((value, index) => fromJson(columns[keyColumns[index] ?? ''], value)));
  } catch (error) {
    const problem = reasonOf(error);
    throw new RefoldError('BAD_USER_INPUT', `${keyText(values)} is not a key of ${id}: ${problem}`);
  }
}

/**
 * The key that somebody typed: a JSON array with a value for each of the key's columns, or the value of the only one as it is listed. Only the
 * column decides what `10023` or `true` is. @throws RefoldError `BAD_USER_INPUT`
 */
export function typedKey(projection: Keyed, text: string): RowKey {
  const values = typedValues(text, projection.keyColumns.length);
  if (projection.keyColumns.length > 1 || values[0] === text) return rowKeyOf(projection, values);
  try {
    return rowKeyOf(projection, values);
  } catch {
    return rowKeyOf(projection, text); // such as the text '[1]'
  }
}

/** The values of {@link typedKey}, where nothing is known of the columns. */
export function typedValues(text: string, columns?: number): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (Array.isArray(parsed) && (columns === undefined || parsed.length === columns)) return parsed;
  } catch {
    // Not JSON, so a text.
  }
  return [text];
}

/** Values of these kinds may be given as text, as command lines do. */
function fromJson(column: Column | undefined, value: unknown): unknown {
  switch (column?.type.kind) {
    case 'bigint':
      return Number.isSafeInteger(value) || isWhole(value) ? BigInt(value as number | string) : value; // of these two types
    case 'integer':
      return isWhole(value) ? Number(value) : value;
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value;
    default:
      return value;
  }
}

const isWhole = (value: unknown) => typeof value === 'string' && /^-?\d{1,19}$/.test(value);
