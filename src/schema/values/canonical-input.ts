import { RefoldError } from '../../errors.ts';
import type { Column } from '../../projections/columns/column.ts';
import { problemOf } from '../../projections/columns/invalid-row.ts';
import { createRowCodec, type RowCodec } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { kindInGraphql } from './column-kinds.ts';

/**
 * Converts a client's value for a column to canonical form. A decimal may have more digits than the column, because it is compared, not
 * stored.
 *
 * @throws RefoldError `BAD_USER_INPUT` for a value that the column could never hold.
 */
export function canonicalInput(column: Column, name: string, value: unknown): unknown {
  if (value === null) {
    if (column.flags.nullable) return null;
    throw badInput(`'${name}' can't be null.`);
  }
  const given = parsedInput(column, name, value);
  if (column.type.kind === 'decimal') return given;
  try {
    return codecOf(column).normaliseKey([given])[0];
  } catch (cause) {
    if (cause instanceof RefoldError && cause.code === 'INVALID_ROW')
      throw badInput(problemOf(cause).replace("column 'value'", `'${name}'`), { cause });
    throw cause;
  }
}

/** Whether a column can hold a value of another column. If it cannot, no row has that value. */
export function columnHolds(column: Column, value: unknown): boolean {
  try {
    codecOf(column).normaliseKey([value]);
    return true;
  } catch (error) {
    if (error instanceof RefoldError && error.code === 'INVALID_ROW') return false;
    throw error;
  }
}

/** Returns the key from the arguments of a field. @throws RefoldError `BAD_USER_INPUT` */
export function keyArgument(projection: Projection, values: Readonly<Record<string, unknown>>): RowKey {
  return projection.keyColumns.map((name) => canonicalInput(projection.columns[name] as Column, name, values[name])); // there is a column for each
}

export function badInput(problem: string, options?: { cause?: unknown }): RefoldError<'BAD_USER_INPUT'> {
  return new RefoldError('BAD_USER_INPUT', problem, {}, options);
}

function parsedInput({ type }: Column, name: string, value: unknown): unknown {
  const fromInput = kindInGraphql(type.kind)?.fromInput;
  if (!fromInput) return value;
  const parsed = typeof value === 'string' ? fromInput.parse(value) : undefined;
  if (parsed === undefined) throw badInput(`'${name}' expects ${fromInput.expected}.`);
  return parsed;
}

// A codec checks whole rows and keys. With a single column as the key, it checks one value. Filter values may be longer than stored texts.
const codecs = new WeakMap<Column, RowCodec>();

function codecOf(column: Column): RowCodec {
  const known = codecs.get(column);
  if (known) return known;
  const codec = createRowCodec({ value: column }, ['value'], {});
  codecs.set(column, codec);
  return codec;
}
