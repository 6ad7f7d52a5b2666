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
  /** Converts a value from its canonical form to the one that `evolve` reads. Undefined if they are the same. */
  readonly forEvolve?: (value: unknown) => unknown;
}

/** The limits of a column, for the schema of an input that is stored in it. */
export interface ColumnLimit {
  /** For an indexed text: the maximum of bytes in UTF-8 (`Buffer.byteLength(text)`). For bytes: the declared maximum. */
  readonly maxBytes?: number;
  /** For an integer. */
  readonly min?: number;
  readonly max?: number;
  /** For a decimal: the total number of digits, and the digits after the point. */
  readonly precision?: number;
  readonly scale?: number;
}

/** Everything about a kind of column but its declaration, its SQL and its GraphQL. */
interface KindCodec extends ValueCodec {
  /** The maximum of bytes in an index; 0 for texts, which share what is left, and for kinds with another kind of index. */
  readonly indexBytes: number;
  readonly limit?: ColumnLimit;
}

/** @param maxTextBytes the maximum of bytes for an indexed text */
export function codecOf(column: Column, maxTextBytes?: number): ValueCodec {
  const inner = kindCodec(column, maxTextBytes);
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
    ...(inner.forEvolve ? { forEvolve: orNull(inner.forEvolve) } : {}),
  };
}

function orNull(convert: (value: unknown) => unknown): (value: unknown) => unknown {
  return (value) => (value === null ? null : convert(value));
}

const same = (value: unknown) => value;

// The length header and the padding before the next value of an index entry.
export const aroundValue = 8;
const fixedBytes = 16 + aroundValue;

export function kindCodec({ type }: Column, maxTextBytes?: number): KindCodec {
  switch (type.kind) {
    case 'text':
      return textCodec(maxTextBytes);
    case 'boolean':
      return {
        normalise: (value, path) => expectType(value, 'boolean', path),
        encode: same,
        decode: same,
        indexBytes: fixedBytes,
      };
    case 'integer':
      return {
        normalise: checkInteger,
        encode: same,
        decode: Number,
        indexBytes: fixedBytes,
        limit: { min: -2_147_483_648, max: 2_147_483_647 },
      };
    case 'bigint':
      return {
        normalise: checkBigint,
        encode: String,
        decode: (raw) => BigInt(raw as bigint | string), // text of a bigint column
        indexBytes: fixedBytes,
      };
    case 'decimal':
      return {
        normalise: (value, path) => checkDecimal(value, path, type.precision, type.scale),
        encode: (value) => (isOwnDecimal(value) ? value : decimal(value as string)).toFixed(),
        decode: (raw) => canonicalDecimal(raw as string), // numeric text
        // Two bytes per four digits, on both sides of the point.
        indexBytes: Math.ceil(type.precision / 2) + 2 * aroundValue,
        limit: { precision: type.precision, scale: type.scale },
      };
    case 'uuid':
      return {
        normalise: (value, path) => matching(value, path, uuidPattern, `a UUID`).toLowerCase(),
        encode: same,
        decode: same,
        indexBytes: fixedBytes,
      };
    case 'date':
      return { normalise: checkDate, encode: same, decode: same, indexBytes: fixedBytes };
    case 'timestamptz':
      return {
        normalise: checkTimestamp,
        encode: same,
        decode: (raw) => canonicalTimestamp(raw as string), // ISO text
        indexBytes: fixedBytes,
      };
    case 'enum':
      return {
        normalise: (value, path) => checkEnum(value, path, type.values),
        encode: same,
        decode: same,
        indexBytes: Math.max(...type.values.map((value) => value.length)) + aroundValue,
      };
    case 'bytes':
      return bytesCodec(type.maxBytes);
    case 'json':
      return { normalise: checkJson, encode: same, decode: same, indexBytes: 0 };
    case 'object':
      return objectCodec(type.fields);
    case 'list':
      return listCodec(type.item);
  }
}

function textCodec(maxTextBytes: number | undefined): KindCodec {
  return {
    normalise:
      maxTextBytes === undefined
        ? (value, path) => storableText(expectType(value, 'string', path), path)
        : (value, path) => indexableText(storableText(expectType(value, 'string', path), path), path, maxTextBytes),
    encode: same,
    decode: same,
    indexBytes: 0,
  };
}

function bytesCodec(maxBytes: number): KindCodec {
  return {
    normalise: (value, path) => checkBytes(value, path, maxBytes),
    encode: same,
    // The driver reads a column as bytes. In JSON it is a text.
    decode: (raw) => (raw instanceof Uint8Array ? bytesText(raw) : raw),
    forEvolve: (value) => bytesOf(value as string), // normalised before
    indexBytes: maxBytes + aroundValue,
    limit: { maxBytes: maxBytes },
  };
}

function objectCodec(fields: Columns): KindCodec {
  const entries = Object.entries(fields).map(([name, field]) => [name, codecOf(field)] as const);
  const converts = entries.some(([, { forEvolve }]) => forEvolve !== undefined);
  const forEvolve = (value: unknown) =>
    Object.fromEntries(
      entries.map(([name, codec]) => {
        const part = (value as Fields)[name]; // normalised before
        return [name, codec.forEvolve ? codec.forEvolve(part) : part];
      }),
    );
  return {
    indexBytes: 0,
    ...(converts ? { forEvolve } : {}),
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

function listCodec(item: Column): KindCodec {
  const codec = codecOf(item);
  const { forEvolve } = codec;
  return {
    indexBytes: 0,
    ...(forEvolve ? { forEvolve: (value) => (value as unknown[]).map((entry) => forEvolve(entry)) } : {}), // normalised before
    normalise(value, path, before) {
      if (!Array.isArray(value)) throw wrongType(path, 'a list', value);
      return listParts(value, before, (entry, index, known) => codec.normalise(entry, `${path}[${index}]`, known));
    },
    encode: (value) => (value as unknown[]).map((entry) => codec.encode(entry)), // normalised before
    decode: (raw) => (raw as unknown[]).map((entry) => codec.decode(entry)), // written by encode
  };
}

/**
 * Returns bytes in canonical form: PostgreSQL's text of them, such as `\x00ff`. It can't be changed in place, it is compared and sorted like
 * the bytes, and it is the same in JSON.
 */
function checkBytes(value: unknown, path: string, most: number): string {
  const text = value instanceof Uint8Array ? bytesText(value) : value;
  if (typeof text !== 'string' || (text === value && !isBytesText(text))) throw wrongType(path, 'a Uint8Array', value);
  const bytes = text.length / 2 - 1;
  if (bytes <= most) return text;
  throw invalidRow(
    `column '${path}' holds ${bytes} bytes; ${most} are the most.`,
    ' Shorten it, or raise its maxBytes.',
  );
}

function bytesText(bytes: Uint8Array): string {
  return `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}

function isBytesText(text: string): boolean {
  return text.startsWith('\\x') && text.length % 2 === 0 && !/[^0-9a-f]/.test(text.slice(2));
}

function bytesOf(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.slice(2), 'hex'));
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function checkEnum(value: unknown, path: string, values: readonly string[]): string {
  if (typeof value === 'string' && values.includes(value)) return value;
  throw wrongType(path, `one of ${values.map((known) => `'${known}'`).join(', ')}`, value);
}
