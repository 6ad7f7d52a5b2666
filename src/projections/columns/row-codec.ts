import { closest } from '../../events/closest.ts';
import { type Column, type Columns, isContainer } from './column.ts';
import { isDecimal } from './decimal.ts';
import { invalidRow, show } from './invalid-row.ts';
import { textLimits } from './text-limits.ts';
import { codecOf, type ValueCodec } from './value-codec.ts';

/** A row in memory: column names to values. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * Converts values of a table's columns to one canonical form. A row cached in memory then equals the same row read back from PostgreSQL, at
 * any batch size.
 */
export interface RowCodec {
  /**
   * Checks the result of `evolve`, and fills in defaults and the key. `before` is the row that `evolve` received, already in canonical
   * form. Values and parts that are unchanged from it are not checked again. Lists, objects and JSON are frozen to make that safe.
   * @throws RefoldError `INVALID_ROW` that names the column
   */
  normalise(row: object, key: readonly unknown[], before?: Row | null): Row;
  /** The values of a key in canonical form. */
  normaliseKey(key: readonly unknown[]): readonly unknown[];
  /** The row as JSON that `json_to_recordset` reads without loss. */
  encode(row: Row): Record<string, unknown>;
  /** Converts a row that the driver read. */
  decode(raw: Record<string, unknown>): Row;
  encodeValue(column: string, value: unknown): unknown;
  /** {@link encodeValue} of one column, for encoding many values. */
  encoderOf(column: string): (value: unknown) => unknown;
  decodeValue(column: string, raw: unknown): unknown;
  /** Returns a row as `evolve` reads it: the same object, if no column has another form there. */
  forEvolve(row: Row): Row;
  /** Returns a key as `key` and `evolve` write it. */
  keyForEvolve(key: readonly unknown[]): readonly unknown[];
}

/** One column of a row. */
interface Part {
  readonly name: string;
  readonly codec: ValueCodec;
  /** Its index in the key; undefined if it is not part of it. */
  readonly inKey: number | undefined;
  /** The lists, objects and JSON of this column that this codec created and froze. Undefined for immutable scalars. */
  readonly made: WeakSet<object> | undefined;
}

/** @param limits the maximum of bytes per indexed text; pass none for search values, which are not stored */
export function createRowCodec(
  columns: Columns,
  keyColumns: readonly string[],
  limits: Readonly<Record<string, number>> = textLimits(columns, keyColumns),
): RowCodec {
  const names = Object.keys(columns);
  const keyIndex = new Map(keyColumns.map((name, index) => [name, index]));
  const parts: readonly Part[] = names.map((name) => {
    const column = columns[name] as Column; // names are the keys of columns
    const made = isContainer(column) ? new WeakSet() : undefined;
    return { name, codec: codecOf(column, limits[name]), inKey: keyIndex.get(name), made };
  });
  const byName = new Map(parts.map((part) => [part.name, part.codec]));
  // Each row starts as a copy: faster than adding columns one by one, and all rows share one hidden class.
  const blank: Readonly<Record<string, unknown>> = Object.fromEntries(names.map((name) => [name, null]));
  const codec = (name: string) => {
    const found = byName.get(name);
    if (!found) throw invalidRow(`unknown column '${name}'.${closest(name, names)}`);
    return found;
  };
  const keyCodecs = keyColumns.map(codec);
  const converted = parts.flatMap(({ name, codec: { forEvolve } }) => (forEvolve ? [[name, forEvolve] as const] : []));

  return {
    normalise(row, key, before = null) {
      const given = row as Record<string, unknown>; // any object; only its columns' names are read
      for (const name in given) {
        if (!byName.has(name) && Object.hasOwn(given, name))
          throw invalidRow(`the result has a column '${name}' that the table does not declare.${closest(name, names)}`);
      }
      const result = { ...blank };
      for (let index = 0; index < parts.length; index++) {
        const { name, codec, inKey, made } = parts[index] as Part; // index < length
        const value = given[name];
        if (inKey === undefined) {
          let known = before === null ? undefined : before[name];
          // Values read from the table are not frozen, and may have been mutated.
          if (made && !made.has(known as object)) known = undefined; // false for a scalar
          if (value === known && value !== undefined) {
            result[name] = known; // not `value`, which may be -0
            continue;
          }
          const normal = codec.normalise(value, name, known);
          if (made && typeof normal === 'object' && normal !== null) made.add(normal);
          result[name] = normal;
          continue;
        }
        const ofKey = key[inKey];
        result[name] = ofKey;
        if (value !== undefined && value !== ofKey && !sameKeyValue(codec.normalise(value, name), ofKey)) {
          const wayOut = " Leave key columns out, or return them as 'key' gave them.";
          throw invalidRow(
            `the result has ${name} = ${show(value)}, but the event's key says ${show(ofKey)}.`,
            wayOut,
            `the result has another ${name} than the event's key says.`,
          );
        }
      }
      return result;
    },
    normaliseKey: (key) => keyCodecs.map((codec, index) => codec.normalise(key[index], keyColumns[index] as string)), // one codec for each
    // Plain loops, because this runs for every row that is written or read. Creating entries for each value would cost as much as the
    // codecs.
    encode(row) {
      const result = { ...blank };
      for (let index = 0; index < parts.length; index++) {
        const { name, codec } = parts[index] as Part; // index < length
        result[name] = codec.encode(row[name]);
      }
      return result;
    },
    decode(raw) {
      const result: Record<string, unknown> = {};
      for (const name of Object.keys(raw)) result[name] = codec(name).decode(raw[name]);
      return result;
    },
    encodeValue: (column, value) => codec(column).encode(value),
    encoderOf: (column) => codec(column).encode,
    decodeValue: (column, raw) => codec(column).decode(raw),
    forEvolve(row) {
      if (converted.length === 0) return row;
      const given = { ...row };
      for (const [name, convert] of converted) if (Object.hasOwn(row, name)) given[name] = convert(row[name]);
      return given;
    },
    keyForEvolve: (key) =>
      converted.length === 0 ? key : key.map((value, index) => keyCodecs[index]?.forEvolve?.(value) ?? value),
  };
}

function sameKeyValue(a: unknown, b: unknown): boolean {
  return isDecimal(a) && isDecimal(b) ? a.eq(b) : a === b;
}
