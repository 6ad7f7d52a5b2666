import { invalidDeclaration } from '../../errors.ts';
import { type Decimal, decimal } from './decimal.ts';

/** The type of a column, without its TypeScript types. */
export type ColumnKind =
  | { readonly kind: 'text' | 'integer' | 'bigint' | 'boolean' | 'uuid' | 'date' | 'timestamptz' | 'json' }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'bytes'; readonly maxBytes: number }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  | { readonly kind: 'object'; readonly fields: Readonly<Record<string, Column>> }
  | { readonly kind: 'list'; readonly item: Column };

export interface ColumnFlags {
  readonly nullable: boolean;
  readonly primaryKey: boolean;
  /** Offered in `where` and `orderBy`. Refold creates an index for it. */
  readonly index: boolean;
  readonly unique: boolean;
  /** The column that limits the uniqueness: values are unique among rows with the same value there. */
  readonly within?: string;
  /** Supports search for any part of the text, and case-insensitive search. */
  readonly search: boolean;
  /** Takes texts of any length. Missing in definitions that earlier releases stored. */
  readonly long?: boolean;
  /** Values never appear in messages, logs or status. */
  readonly personal: boolean;
  readonly hasDefault: boolean;
  readonly default?: unknown;
  readonly description?: string;
  readonly deprecated?: string;
}

/** Options of an index. */
export interface IndexOptions {
  /**
   * For text: also supports search for its end (`endsWith`) or any part of it (`contains`), and case-insensitive patterns (`ilike`). This
   * needs a second index, which is several times as large as the text and makes writes slower. It needs PostgreSQL's extension `pg_trgm`,
   * which Refold creates if it may.
   * @default false
   */
  readonly search?: boolean;
  /**
   * For text: the column takes texts of any length. Its index and the order of rows consider the first 256 characters only; filters compare
   * whole texts. `search` implies it. Without both, a value holds up to 1,024 bytes. Not for a key or a unique column.
   * @default false
   */
  readonly long?: boolean;
}

/** The rows among which a value is unique. */
export interface UniqueOptions<Within extends string = string> {
  /** Another column of the table. Rows that differ in it may have the same value, for example rows of two tenants. @default all rows */
  readonly within?: Within;
}

declare const types: unique symbol;

// Lists the kinds instead of `unknown`: a literal that `evolve` returns keeps its literal type only if the expected type can hold literals.
type AnyInput = string | number | bigint | boolean | object | null | undefined;

// Not `unknown`, which AnyInput does not include. No bigint, which JSON cannot represent.
type AnyJson = string | number | boolean | object;
type JsonOf<T> = unknown extends T ? AnyJson : T;

/**
 * A column of a read table. Immutable: each modifier returns a new column. `Value` is what `evolve` reads, `Input` what it may return.
 */
export interface Column<
  Value = unknown,
  Input = AnyInput,
  Optional extends boolean = boolean,
  Key extends boolean = boolean,
> {
  readonly type: ColumnKind;
  readonly flags: ColumnFlags;
  /** Types only; never set. */
  readonly [types]?: { value: Value; input: Input; optional: Optional; key: Key };
  /** Part of the row's key. Several key columns form a composite key, in order of declaration. */
  primaryKey(): Column<Value, Input, Optional, true>;
  /** Allows null. If `evolve`'s result leaves the column out, the value is null. */
  nullable(): Column<Value | null, Input | null, true, Key>;
  /** The value if `evolve`'s result leaves the column out. */
  default(value: Input): Column<Value, Input, true, Key>;
  /**
   * Offers the column in `where` and `orderBy`, and creates the index for both. A list, an object or JSON is offered in `where` only, to
   * search for its contents.
   */
  index(options?: IndexOptions): Column<Value, Input, Optional, Key>;
  /**
   * Like {@link index}, with a unique index and a GraphQL lookup field: `parcelByTrackingId(trackingId)`. With `within` the field takes
   * both values: `parcelByTrackingId(trackingId, tenantId)`. Nulls are never equal.
   */
  unique(options?: UniqueOptions): Column<Value, Input, Optional, Key>;
  /**
   * Marks the values as personal data: they never appear in Refold's messages, logs or status, or in the stored error of a dead letter. For
   * a key column, neither the key nor the stream id appears. Use `access` to restrict who may read the column.
   */
  personal(): Column<Value, Input, Optional, Key>;
  /** The field's description in GraphQL. */
  describe(text: string): Column<Value, Input, Optional, Key>;
  /** Marks the field deprecated in GraphQL, with the reason. */
  deprecated(reason: string): Column<Value, Input, Optional, Key>;
}

export type Columns = Readonly<Record<string, Column>>;

/** Whether a column is stored as jsonb. It has no order, and is searched by its contents. */
export function isContainer({ type }: Pick<Column, 'type'>): boolean {
  return type.kind === 'json' || type.kind === 'object' || type.kind === 'list';
}

export type ValueOf<C> = C extends Column<infer V, infer _I, infer _O, infer _K> ? V : never;
export type InputOf<C> = C extends Column<infer _V, infer I, infer _O, infer _K> ? I : never;
type IsOptional<C> = C extends Column<infer _V, infer _I, infer O, infer _K> ? O : never;
type IsKey<C> = C extends Column<infer _V, infer _I, infer _O, infer K> ? K : never;
type Simplify<T> = { [K in keyof T]: T[K] } & {};

/** The names of a table's key columns. */
export type KeyColumnOf<C extends Columns> = { [N in keyof C & string]: true extends IsKey<C[N]> ? N : never }[keyof C &
  string];

/** A row as `evolve` and clients read it. */
export type RowOf<C extends Columns> = Simplify<{ readonly [N in keyof C]: ValueOf<C[N]> }>;

type OptionalColumn<C extends Columns> = {
  [N in keyof C & string]: true extends IsKey<C[N]> ? N : true extends IsOptional<C[N]> ? N : never;
}[keyof C & string];

/**
 * A row as `evolve` may return it. It may leave out key columns (Refold fills them in), columns with a default, and nullable columns.
 * `undefined` also means left out. You can pass an optional field of a payload unchanged.
 */
export type RowInputOf<C extends Columns> = Simplify<
  { readonly [N in Exclude<keyof C & string, OptionalColumn<C>>]: InputOf<C[N]> } & {
    readonly [N in OptionalColumn<C>]?: InputOf<C[N]> | undefined;
  }
>;

type IsUnion<T, U = T> = T extends unknown ? ([U] extends [T] ? false : true) : never;

/** The key of a row: the key column's value, or an object of the key columns if the key is composite. */
export type KeyOf<C extends Columns> =
  IsUnion<KeyColumnOf<C>> extends true
    ? Simplify<{ readonly [N in KeyColumnOf<C>]: InputOf<C[N]> }>
    : InputOf<C[KeyColumnOf<C>]>;

type Fields = Columns;

function column<Value, Input>(type: ColumnKind, flags: ColumnFlags = noFlags): Column<Value, Input, false, false> {
  const next = (change: Partial<ColumnFlags>) => column(type, { ...flags, ...change });
  const made = {
    type: Object.freeze(type),
    flags: Object.freeze(flags),
    primaryKey: () => next({ primaryKey: true, index: true }),
    nullable: () => next({ nullable: true }),
    default: (value: unknown) => next({ default: value, hasDefault: true }),
    index: ({ search = false, long = false }: IndexOptions = {}) => next({ index: true, search, long }),
    unique: ({ within }: UniqueOptions = {}) =>
      next({ index: true, unique: true, ...(within === undefined ? {} : { within }) }),
    personal: () => next({ personal: true }),
    describe: (description: string) => next({ description }),
    deprecated: (reason: string) => next({ deprecated: reason }),
  };
  return Object.freeze(made) as unknown as Column<Value, Input, false, false>; // modifiers change only the phantom types
}

const noFlags: ColumnFlags = {
  nullable: false,
  primaryKey: false,
  index: false,
  unique: false,
  search: false,
  long: false,
  personal: false,
  hasDefault: false,
};

/** Options of {@link t}.bytes. */
export interface BytesOptions {
  /** The maximum of bytes of a value, from 1 to 16,777,216. @default 65536 */
  readonly maxBytes?: number;
}

export type DecimalInput = Decimal | string | bigint;

/**
 * The column types.
 *
 * | type | in `evolve` | PostgreSQL | GraphQL |
 * | --- | --- | --- | --- |
 * | `text` | string | text | String; ID if it is a key, refers to a row in a relation, or is called `id` or `…Id` |
 * | `integer` | number, 32 bits | integer | Int |
 * | `bigint` | bigint | bigint | BigInt, a decimal string |
 * | `decimal(p, s)` | {@link Decimal} | numeric(p, s) | Decimal, an exact string |
 * | `boolean` | boolean | boolean | Boolean |
 * | `uuid` | string | uuid | UUID |
 * | `date` | `'2026-01-31'` | date | Date |
 * | `timestamptz` | ISO 8601 string in UTC | timestamptz | DateTime |
 * | `bytes({ maxBytes })` | Uint8Array | bytea | Base64, a string |
 * | `enum([...])` | union of the values | text with a check | an enum type |
 * | `json<T>()` | T | jsonb | JSON |
 * | `object({...})` | object | jsonb | an object type |
 * | `list(item)` | readonly array | jsonb | a list |
 */
export const t = Object.freeze({
  /** Bytes, such as a hash, a signature or a small picture. A longer value is refused. With an index, a few hundred bytes at most. */
  bytes: ({ maxBytes = 65_536 }: BytesOptions = {}): Column<Uint8Array, Uint8Array, false, false> => {
    if (!Number.isInteger(maxBytes) || maxBytes < 1 || maxBytes > 16_777_216)
      throw invalidDeclaration(`t.bytes({ maxBytes: ${maxBytes} })`, 'expected 1 to 16777216 bytes.');
    return column<Uint8Array, Uint8Array>({ kind: 'bytes', maxBytes });
  },
  text: () => column<string, string>({ kind: 'text' }),
  integer: () => column<number, number>({ kind: 'integer' }),
  bigint: () => column<bigint, bigint | number>({ kind: 'bigint' }),
  boolean: () => column<boolean, boolean>({ kind: 'boolean' }),
  uuid: () => column<string, string>({ kind: 'uuid' }),
  date: () => column<string, string>({ kind: 'date' }),
  timestamptz: () => column<string, string>({ kind: 'timestamptz' }),
  json: <T = AnyJson>() => column<JsonOf<T>, JsonOf<T>>({ kind: 'json' }),
  /** Exact: `precision` digits in total, `scale` of them after the point. A value with more digits is refused, never rounded. */
  decimal: (precision: number, scale: number): Column<Decimal, DecimalInput, false, false> => {
    if (
      !Number.isInteger(precision) ||
      !Number.isInteger(scale) ||
      precision < 1 ||
      precision > 1000 ||
      scale < 0 ||
      scale > precision
    ) {
      throw invalidDeclaration(
        `t.decimal(${precision}, ${scale})`,
        'expected 1 to 1000 digits in all, and no more of them after the point.',
      );
    }
    return column<Decimal, DecimalInput>({ kind: 'decimal', precision, scale });
  },
  enum: <const V extends readonly [string, ...string[]]>(values: V) => {
    const wrong = values.find(
      (value) => !/^[_A-Za-z][_0-9A-Za-z]*$/.test(value) || /^(true|false|null|__.*)$/.test(value),
    );
    if (wrong !== undefined)
      throw invalidDeclaration('t.enum', `'${wrong}' is not a valid GraphQL enum value; use letters, digits and _.`);
    if (new Set(values).size !== values.length) throw invalidDeclaration('t.enum', 'names a value twice.');
    return column<V[number], V[number]>({ kind: 'enum', values: Object.freeze([...values]) });
  },
  object: <F extends Fields>(fields: F) => {
    if (Object.keys(fields).length === 0) throw invalidDeclaration('t.object', 'has no field.');
    return column<RowOf<F>, RowInputOf<F>>({ kind: 'object', fields: Object.freeze({ ...fields }) });
  },
  list: <C extends Column>(item: C) => column<readonly ValueOf<C>[], readonly InputOf<C>[]>({ kind: 'list', item }),
});

export { decimal };
