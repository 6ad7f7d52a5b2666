import { closest } from '../../events/closest.ts';
import { canonicalTimestamp, checkDate, checkTimestamp } from './calendar-values.ts';
import { type Column, type Columns, isContainer } from './column.ts';
import { decimal, isOwnDecimal } from './decimal.ts';
import { expectType, invalidRow, matching, wrongType } from './invalid-row.ts';
import { checkJson } from './json-values.ts';
import { listParts } from './list-parts.ts';
import { canonicalDecimal, checkBigint, checkDecimal, checkInteger } from './numeric-values.ts';
import { indexableText, storableText } from './text-values.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Converts the values of one column to their canonical form, and to PostgreSQL and back. */
export interface ValueCodec {
  /**
   * Freezes lists, objects and JSON. `before` is an earlier value of the column in canonical form. Its objects and lists that occur in the
   * new value are not checked again.
   */
  normalise(value: unknown, path: string, before?: unknown): unknown;
  encode(value: unknown): unknown;
  decode(raw: unknown): unknown;
}

/** @param mostBytes the maximum of bytes for an indexed text */
export function codecOf(column: Column, mostBytes?: number): ValueCodec {
  const inner = kindCodec(column, mostBytes);
  const { nullable, hasDefault } = column.flags;
  const fallback = hasDefault ? inner.normalise(column.flags.default, '(default)') : null;
  const isShared = fallback !== null && isContainer(column);
  return {
    normalise(value, path, before) {
      if (value === undefined && (hasDefault || nullable)) return isShared ? inner.normalise(fallback, path) : fallback;
      if (value === undefined)
        throw invalidRow(`column '${path}' is missing. Return it, or declare it nullable() or with a default().`);
      if (value === null) {
        if (nullable) return null;
        throw invalidRow(`column '${path}' is null, but not declared nullable().`);
      }
      return value === before ? before : inner.normalise(value, path, before);
    },
    encode: (value) => (value === null || value === undefined ? null : inner.encode(value)),
    decode: (raw) => (raw === null || raw === undefined ? null : inner.decode(raw)),
  };
}

const same = (value: unknown) => value;

function kindCodec({ type }: Column, mostBytes: number | undefined): ValueCodec {
  switch (type.kind) {
    case 'text':
      return {
        normalise:
          mostBytes === undefined
            ? (value, path) => storableText(expectType(value, 'string', path), path)
            : (value, path) => indexableText(storableText(expectType(value, 'string', path), path), path, mostBytes),
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
        encode: (value) => (isOwnDecimal(value) ? value : decimal(value as string)).toFixed(),
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
    normalise(value, path, before) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw wrongType(path, 'an object', value);
      const given = value as Record<string, unknown>; // checked above
      for (const name of Object.keys(given)) {
        if (!Object.hasOwn(fields, name))
          throw invalidRow(
            `'${path}' has a field '${name}' that it does not declare.${closest(name, Object.keys(fields))}`,
          );
      }
      const known = before as Fields | undefined; // made by this codec
      return Object.freeze(
        Object.fromEntries(
          entries.map(([name, codec]) => [name, codec.normalise(given[name], `${path}.${name}`, known?.[name])]),
        ),
      );
    },
    encode: (value) =>
      Object.fromEntries(entries.map(([name, codec]) => [name, codec.encode((value as Fields)[name])])), // normalised before
    decode: (raw) => Object.fromEntries(entries.map(([name, codec]) => [name, codec.decode((raw as Fields)[name])])), // written by encode
  };
}

function listCodec(item: Column): ValueCodec {
  const codec = codecOf(item);
  return {
    normalise(value, path, before) {
      if (!Array.isArray(value)) throw wrongType(path, 'a list', value);
      return listParts(value, before, (entry, index, known) => codec.normalise(entry, `${path}[${index}]`, known));
    },
    encode: (value) => (value as unknown[]).map((entry) => codec.encode(entry)), // normalised before
    decode: (raw) => (raw as unknown[]).map((entry) => codec.decode(entry)), // written by encode
  };
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function checkEnum(value: unknown, path: string, values: readonly string[]): string {
  if (typeof value === 'string' && values.includes(value)) return value;
  throw wrongType(path, `one of ${values.map((known) => `'${known}'`).join(', ')}`, value);
}
