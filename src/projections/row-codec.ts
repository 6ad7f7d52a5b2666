import { RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { Column, Columns } from './column.ts';
import { decimal, isDecimal } from './decimal.ts';

/** A row in memory: column name to value. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * Brings values of a table's columns into their one canonical form, so that a row kept in memory equals the same row
 * read back from PostgreSQL, whatever the size of a batch.
 */
export interface RowCodec {
  /** Checks what `evolve` returned, fills in defaults and the key. Throws `INVALID_ROW` with the column named. */
  normalise(row: object, key: readonly unknown[]): Row;
  /** The values of a key in their canonical form. */
  normaliseKey(key: readonly unknown[]): readonly unknown[];
  /** A row as JSON that `json_to_recordset` takes without loss. */
  encode(row: Row): Record<string, unknown>;
  /** A row as the driver read it. */
  decode(raw: Record<string, unknown>): Row;
  encodeValue(column: string, value: unknown): unknown;
  decodeValue(column: string, raw: unknown): unknown;
}

interface ValueCodec {
  normalise(value: unknown, path: string): unknown;
  encode(value: unknown): unknown;
  decode(raw: unknown): unknown;
}

export function createRowCodec(columns: Columns, keyColumns: readonly string[]): RowCodec {
  const names = Object.keys(columns);
  const codecs = names.map((name) => codecOf(columns[name] as Column)); // names are the keys of columns
  const byName = new Map(names.map((name, index) => [name, codecs[index] as ValueCodec])); // same length
  const keyIndex = new Map(keyColumns.map((name, index) => [name, index]));
  const codec = (name: string) => {
    const found = byName.get(name);
    if (!found) throw invalidRow(`unknown column '${name}'.${closest(name, names)}`);
    return found;
  };

  return {
    normalise(row, key) {
      const given = row as Record<string, unknown>; // any object is looked at by its columns' names
      for (const name of Object.keys(given)) {
        if (!byName.has(name))
          throw invalidRow(`the result has a column '${name}' that the table does not declare.${closest(name, names)}`);
      }
      const result: Record<string, unknown> = {};
      for (let index = 0; index < names.length; index++) {
        const name = names[index] as string; // index < length
        const position = keyIndex.get(name);
        const value = given[name];
        if (position === undefined)
          result[name] = (codecs[index] as ValueCodec).normalise(value, name); // same length
        else {
          result[name] = key[position];
          if (value !== undefined && !sameKeyValue(codec(name).normalise(value, name), key[position])) {
            throw invalidRow(
              `the result has ${name} = ${show(value)}, but the event's key says ${show(key[position])}. Leave key columns out, or return them as 'key' gave them.`,
            );
          }
        }
      }
      return result;
    },
    normaliseKey: (key) => keyColumns.map((name, index) => codec(name).normalise(key[index], name)),
    // Loops, since every row that is written or read comes through here: entries made for each value cost as much as the codecs.
    encode(row) {
      const result: Record<string, unknown> = {};
      for (let index = 0; index < names.length; index++) {
        const name = names[index] as string; // index < length
        result[name] = (codecs[index] as ValueCodec).encode(row[name]); // same length
      }
      return result;
    },
    decode(raw) {
      const result: Record<string, unknown> = {};
      for (const name of Object.keys(raw)) result[name] = codec(name).decode(raw[name]);
      return result;
    },
    encodeValue: (column, value) => codec(column).encode(value),
    decodeValue: (column, raw) => codec(column).decode(raw),
  };
}

function sameKeyValue(a: unknown, b: unknown): boolean {
  return isDecimal(a) && isDecimal(b) ? a.eq(b) : a === b;
}

function codecOf(column: Column): ValueCodec {
  const inner = kindCodec(column);
  const { nullable, hasDefault } = column.flags;
  const fallback = hasDefault ? inner.normalise(column.flags.default, '(default)') : null;
  return {
    normalise(value, path) {
      if (value === undefined && (hasDefault || nullable)) return fallback;
      if (value === undefined)
        throw invalidRow(`column '${path}' is missing. Return it, or declare it nullable() or with a default().`);
      if (value === null) {
        if (nullable) return null;
        throw invalidRow(`column '${path}' is null, but not declared nullable().`);
      }
      return inner.normalise(value, path);
    },
    encode: (value) => (value === null || value === undefined ? null : inner.encode(value)),
    decode: (raw) => (raw === null || raw === undefined ? null : inner.decode(raw)),
  };
}

const same = (value: unknown) => value;

function kindCodec({ type, flags }: Column): ValueCodec {
  switch (type.kind) {
    case 'text':
      return {
        normalise: flags.index
          ? (value, path) => indexableText(storableText(expectType(value, 'string', path), path), path)
          : (value, path) => storableText(expectType(value, 'string', path), path),
        encode: same,
        decode: same,
      };
    case 'boolean':
      return { normalise: (value, path) => expectType(value, 'boolean', path), encode: same, decode: same };
    case 'integer':
      return { normalise: checkInteger, encode: same, decode: Number };
    case 'bigint':
      return { normalise: checkBigint, encode: String, decode: (raw) => BigInt(raw as bigint | string) }; // text of a bigint column
    case 'decimal':
      return {
        normalise: (value, path) => checkDecimal(value, path, type.precision, type.scale),
        encode: (value) => decimal(value as string).toFixed(),
        decode: (raw) => canonicalDecimal(raw as string),
      }; // numeric text
    case 'uuid':
      return {
        normalise: (value, path) => matching(value, path, uuidPattern, `a UUID`).toLowerCase(),
        encode: same,
        decode: same,
      };
    case 'date':
      return { normalise: checkDate, encode: same, decode: same };
    case 'timestamptz':
      return { normalise: checkTimestamp, encode: same, decode: (raw) => canonicalTimestamp(raw as string) }; // ISO text
    case 'enum':
      return { normalise: (value, path) => checkEnum(value, path, type.values), encode: same, decode: same };
    case 'json':
      return { normalise: checkJson, encode: same, decode: same };
    case 'object':
      return objectCodec(type.fields);
    case 'list':
      return listCodec(type.item);
  }
}

function objectCodec(fields: Columns): ValueCodec {
  const entries = Object.entries(fields).map(([name, field]) => [name, codecOf(field)] as const);
  return {
    normalise(value, path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw wrongType(path, 'an object', value);
      const given = value as Record<string, unknown>; // an object, checked above
      for (const name of Object.keys(given)) {
        if (!Object.hasOwn(fields, name))
          throw invalidRow(
            `'${path}' has a field '${name}' that it does not declare.${closest(name, Object.keys(fields))}`,
          );
      }
      return Object.fromEntries(
        entries.map(([name, codec]) => [name, codec.normalise(given[name], `${path}.${name}`)]),
      );
    },
    encode: (value) => Object.fromEntries(entries.map(([name, codec]) => [name, codec.encode((value as Row)[name])])), // normalised before
    decode: (raw) => Object.fromEntries(entries.map(([name, codec]) => [name, codec.decode((raw as Row)[name])])), // written by encode
  };
}

function listCodec(item: Column): ValueCodec {
  const codec = codecOf(item);
  return {
    normalise(value, path) {
      if (!Array.isArray(value)) throw wrongType(path, 'a list', value);
      return value.map((entry, index) => codec.normalise(entry, `${path}[${index}]`));
    },
    encode: (value) => (value as unknown[]).map((entry) => codec.encode(entry)), // normalised before
    decode: (raw) => (raw as unknown[]).map((entry) => codec.decode(entry)), // written by encode
  };
}

function checkInteger(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value > 2_147_483_647 || value < -2_147_483_648)
    throw wrongType(path, 'a whole number of 32 bits (t.bigint holds more)', value);
  return value === 0 ? 0 : value; // PostgreSQL has no -0
}

const largestBigint = 2n ** 63n;

function checkBigint(value: unknown, path: string): bigint {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value !== 'bigint' || value >= largestBigint || value < -largestBigint)
    throw wrongType(path, 'a bigint of 64 bits', value);
  return value;
}

function checkDecimal(value: unknown, path: string, precision: number, scale: number) {
  if (typeof value === 'number')
    throw wrongType(
      path,
      "an exact decimal (decimal('12.50'), a string or a bigint; a number has already lost exactness)",
      value,
    );
  if (typeof value !== 'string' && typeof value !== 'bigint' && !isDecimal(value))
    throw wrongType(path, 'a decimal', value);
  const exact = parseDecimal(value);
  if (exact === undefined) throw wrongType(path, "a decimal such as '12.50'", value);
  const digitsAfter = Math.max(0, exact.c.length - 1 - exact.e);
  if (digitsAfter > scale) {
    throw invalidRow(
      `column '${path}' is ${exact.toFixed()}, with ${digitsAfter} digits after the point; t.decimal(${precision}, ${scale}) holds ${scale}. Round it in evolve (.round(${scale})) or widen the column.`,
    );
  }
  if (exact.c[0] !== 0 && exact.e + 1 > precision - scale) {
    throw invalidRow(`column '${path}' is ${exact.toFixed()}, too large for t.decimal(${precision}, ${scale}).`);
  }
  return exact;
}

function parseDecimal(value: string | bigint | ReturnType<typeof decimal>) {
  try {
    return canonicalDecimal(value);
  } catch {
    return undefined;
  }
}

function canonicalDecimal(value: string | bigint | ReturnType<typeof decimal>) {
  const exact = decimal(value);
  return exact.c[0] === 0 && exact.s === -1 ? decimal('0') : exact; // PostgreSQL has no -0
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const datePattern = /^\d{4}-\d{2}-\d{2}$/;
const timestampPattern = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)$/i;

function checkDate(value: unknown, path: string): string {
  const text = matching(value, path, datePattern, `a date such as '2026-01-31'`);
  if (!isCalendarDay(text)) throw wrongType(path, `a date of the calendar`, value);
  return text;
}

// PostgreSQL writes the year before 1 otherwise, and `Date` takes February 30 for March 2.
function isCalendarDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().slice(0, 10) === text && !text.startsWith('0000');
}

function checkTimestamp(value: unknown, path: string): string {
  const text = matching(value, path, timestampPattern, `a time with its zone, such as '2026-01-31T12:00:00Z'`);
  const canonical = isCalendarDay(text.slice(0, 10)) ? canonicalTimestamp(text) : undefined;
  if (canonical === undefined || !isCalendarDay(canonical.slice(0, 10)))
    throw wrongType(path, 'a time of the calendar', value);
  return canonical;
}

/**
 * One text per instant: UTC, at least milliseconds, microseconds where they are not zero.
 * `Date` knows milliseconds only, so the digits of the fraction are carried over by hand.
 */
function canonicalTimestamp(text: string): string | undefined {
  const match = /^(.{10})[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|[+-].*)$/i.exec(text);
  if (!match) return undefined;
  const [, day, minutes, seconds = '00', fraction = '', zone = 'Z'] = match;
  const offset = /^[+-]\d{2}$/.test(zone)
    ? `${zone}:00`
    : /^[+-]\d{4}$/.test(zone)
      ? `${zone.slice(0, 3)}:${zone.slice(3)}`
      : zone.toUpperCase();
  const instant = new Date(`${day}T${minutes}:${seconds}${offset}`);
  if (Number.isNaN(instant.getTime()) || instant.getUTCFullYear() > 9999 || instant.getUTCFullYear() < 1)
    return undefined;
  const digits = fraction
    .slice(0, 6)
    .padEnd(6, '0')
    .replace(/0{1,3}$/, '');
  return `${instant.toISOString().slice(0, 19)}.${digits}Z`;
}

function checkEnum(value: unknown, path: string, values: readonly string[]): string {
  if (typeof value === 'string' && values.includes(value)) return value;
  throw wrongType(path, `one of ${values.map((known) => `'${known}'`).join(', ')}`, value);
}

function checkJson(value: unknown, path: string): unknown {
  const text = jsonText(value);
  if (text === undefined || text === 'null') throw wrongType(path, 'a JSON value', value);
  if (/(^|[^\\])(\\\\)*\\u0000/.test(text)) throw unstorable(path);
  return canonicalJson(JSON.parse(text));
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined; // a bigint, or a circle
  }
}

/** As jsonb gives it back: keys by length, then by bytes. An `evolve` that lists keys must not see another order after a reload. */
function canonicalJson(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(canonicalJson);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, part]) => ({
    key: key.toWellFormed(),
    bytes: Buffer.from(key),
    part: canonicalJson(part),
  }));
  members.sort((a, b) => a.bytes.length - b.bytes.length || a.bytes.compare(b.bytes));
  return Object.fromEntries(members.map(({ key, part }) => [key, part]));
}

function storableText(text: string, path: string): string {
  if (text.includes('\u0000')) throw unstorable(path);
  return text.toWellFormed(); // a lone surrogate would come back from PostgreSQL as U+FFFD
}

// A third of a page, 2,704 bytes, is what an index entry holds. The key is part of each entry, and as long as this at most.
const longestIndexedText = 1024;

function indexableText(text: string, path: string): string {
  const bytes = text.length * 3 <= longestIndexedText ? 0 : Buffer.byteLength(text);
  if (bytes <= longestIndexedText) return text;
  throw invalidRow(
    `column '${path}' has an index and holds ${bytes} bytes; an indexed text holds at most ${longestIndexedText}. Shorten it in evolve, or leave out the index.`,
  );
}

function unstorable(path: string): RefoldError {
  return invalidRow(`column '${path}' holds the character U+0000, which PostgreSQL can't store. Remove it in evolve.`);
}

function matching(value: unknown, path: string, pattern: RegExp, expected: string): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw wrongType(path, expected, value);
  return value;
}

function expectType<T extends 'string' | 'boolean'>(
  value: unknown,
  type: T,
  path: string,
): T extends 'string' ? string : boolean {
  if (typeof value !== type) throw wrongType(path, `a ${type}`, value);
  return value as T extends 'string' ? string : boolean; // checked above
}

function wrongType(path: string, expected: string, value: unknown): RefoldError {
  return invalidRow(`column '${path}' expects ${expected}, found ${show(value)}.`);
}

function show(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (isDecimal(value)) return value.toFixed();
  const text = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part)) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function invalidRow(problem: string): RefoldError {
  return new RefoldError('INVALID_ROW', problem);
}
