import type { Column, ColumnKind } from '../../projections/columns/column.ts';
import { decimal, isDecimal } from '../../projections/columns/decimal.ts';

/** Everything that GraphQL needs to know about a kind of column that has a scalar of its own. */
interface KindInGraphql {
  readonly scalar: string;
  /** Describes a value. */
  readonly words: string;
  /** The operators of `where`. */
  readonly operators: readonly string[];
  /** The format of strings in a command's JSON Schema that have this scalar. */
  readonly format?: string;
  /** Converts what a client sends to what the column's codec takes; `parse` returns undefined for what is not valid. */
  readonly fromInput?: { readonly expected: string; readonly parse: (text: string) => unknown };
  /** The opposite, for values of access rules and of an application's resolvers. */
  readonly toInput?: (value: unknown) => unknown;
}

/** Undefined for a text that is not base64 as it is written: with padding, and no other characters. */
export function bytesOfBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

export const equality = ['eq', 'ne', 'in', 'notIn'] as const;
export const ordered = [...equality, 'lt', 'lte', 'gt', 'gte', 'between'] as const;

export const columnKinds = {
  integer: { scalar: 'Int', words: 'a 32-bit integer', operators: ordered },
  bigint: {
    scalar: 'BigInt',
    words: 'a 64-bit integer',
    operators: ordered,
    fromInput: {
      expected: "a whole number as a decimal string, such as '42'",
      parse: (text) => (/^-?\d{1,19}$/.test(text) ? BigInt(text) : undefined),
    },
    toInput: String,
  },
  decimal: {
    scalar: 'Decimal',
    words: 'an exact decimal',
    operators: ordered,
    // JSON Schema leaves this format to its users.
    format: 'decimal',
    fromInput: {
      expected: "a decimal as a string, such as '12.50'",
      parse: (text) => (/^-?\d{1,1000}(\.\d{1,1000})?$/.test(text) ? decimal(text) : undefined),
    },
    // Without an exponent, which clients can't send.
    toInput: (value) => (isDecimal(value) ? value.toFixed() : String(value)),
  },
  bytes: {
    scalar: 'Base64',
    words: 'bytes, in base64',
    operators: equality,
    format: 'base64',
    fromInput: {
      expected: "bytes in base64, such as 'aGk='",
      // Cursors and ids have the canonical form, which is no base64.
      parse: (text) => (text.startsWith('\\x') ? text : bytesOfBase64(text)),
    },
    toInput: (value) => (value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value),
  },
  boolean: { scalar: 'Boolean', words: 'a boolean', operators: ['eq', 'ne'] },
  uuid: { scalar: 'UUID', words: 'a UUID', operators: equality, format: 'uuid' },
  date: { scalar: 'Date', words: 'a date', operators: ordered, format: 'date' },
  timestamptz: { scalar: 'DateTime', words: 'a time, in UTC', operators: ordered, format: 'date-time' },
  json: { scalar: 'JSON', words: 'any JSON value', operators: [] },
} as const satisfies Readonly<Partial<Record<ColumnKind['kind'], KindInGraphql>>>;

export type ScalarKind = keyof typeof columnKinds;

/** Undefined for texts, enums, objects and lists, whose types depend on more than the kind. */
export function kindInGraphql(kind: ColumnKind['kind']): KindInGraphql | undefined {
  return Object.hasOwn(columnKinds, kind) ? columnKinds[kind as ScalarKind] : undefined; // one of its own names
}

/** The kind whose scalar a string of this format has, in JSON Schema. */
export function kindOfFormat(format: string | undefined): ScalarKind | undefined {
  const names = Object.keys(columnKinds) as ScalarKind[]; // the object's own keys
  return format === undefined ? undefined : names.find((name) => kindInGraphql(name)?.format === format);
}

/** Converts a value of a row to the form in which clients send it. */
export function inputValue({ type }: Column, value: unknown): unknown {
  const toInput = kindInGraphql(type.kind)?.toInput;
  return toInput ? toInput(value) : value;
}
