import { invalidDeclaration } from '../../errors.ts';
import { type Decimal, decimal } from './decimal.ts';

/** What a column is, without its TypeScript types. */
export type ColumnKind =
  | { readonly kind: 'text' | 'integer' | 'bigint' | 'boolean' | 'uuid' | 'date' | 'timestamptz' | 'json' }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  | { readonly kind: 'object'; readonly fields: Readonly<Record<string, Column>> }
  | { readonly kind: 'list'; readonly item: Column };

export interface ColumnFlags {
  readonly nullable: boolean;
  readonly primaryKey: boolean;
  /** Offered in `where` and `orderBy`, and served by an index that Refold makes. */
  readonly index: boolean;
  readonly unique: boolean;
  /** The column within whose values this one is unique. */
  readonly within?: string;
  /** Found by parts of its text, and in upper and lower case alike. */
  readonly search: boolean;
  /** Its values are in no message, log or status. */
  readonly personal: boolean;
  readonly hasDefault: boolean;
  readonly default?: unknown;
  readonly description?: string;
  readonly deprecated?: string;
}

/** How a column is found. */
export interface IndexOptions {
  /**
   * Of a text: by any part of it as well (`contains`), and by patterns in upper and lower case alike (`ilike`). A second index serves that, which is
   * several times as large as the text and makes writes slower. Needs PostgreSQL's extension `pg_trgm`, which Refold creates where it may.
   * @default false
   */
  readonly search?: boolean;
}

/** Among which rows a value is unique. */
export interface UniqueOptions<Within extends string = string> {
  /** Another column of the table: rows that differ in it may have the same value, such as those of two tenants. @default all rows */
  readonly within?: Within;
}

declare const types: unique symbol;

// Says `unknown` kind by kind: a literal that `evolve` returns keeps its type only where the expected type can hold literals.
type AnyInput = string | number | bigint | boolean | object | null | undefined;

// `unknown` would be no AnyInput; and a bigint would not survive JSON.
type AnyJson = string | number | boolean | object;
type JsonOf<T> = unknown extends T ? AnyJson : T;

/**
 * A column of a read table. Immutable: each modifier gives a new column.
 * `Value` is what `evolve` reads, `Input` what it may return.
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
  /** Part of the row's key. Several key columns make a composite key in the order of their declaration. */
  primaryKey(): Column<Value, Input, Optional, true>;
  /** May hold null; absent in `evolve`'s result means null. */
  nullable(): Column<Value | null, Input | null, true, Key>;
  /** The value when `evolve`'s result leaves the column out. */
  default(value: Input): Column<Value, Input, true, Key>;
  /**
   * Offers the column in `where` and `orderBy`; Refold makes the index that serves both. Of a list, an object or JSON: in `where` alone, by
   * what is in it.
   */
  index(options?: IndexOptions): Column<Value, Input, Optional, Key>;
  /**
   * As {@link index}, with a unique index, and a look-up by it in GraphQL: `parcelByTrackingId(trackingId)`. With `within` the look-up takes
   * both: `parcelByTrackingId(trackingId, tenantId)`. Nulls are never the same.
   */
  unique(options?: UniqueOptions): Column<Value, Input, Optional, Key>;
  /**
   * The values are personal data: no message, log or status of Refold holds them, nor does the error that is kept with a dead letter. Of a key
   * column, neither the key nor the id of the stream is named. Who may read the column is for `access` to say.
   */
  personal(): Column<Value, Input, Optional, Key>;
  /** The field's description in GraphQL. */
  describe(text: string): Column<Value, Input, Optional, Key>;
  /** Marks the field deprecated in GraphQL, with the reason. */
  deprecated(reason: string): Column<Value, Input, Optional, Key>;
}

export type Columns = Readonly<Record<string, Column>>;

/** Whether a column is JSON in the table: it has no order, and is found by what is in it. */
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
 * A row as `evolve` may return it: key columns may be left out (Refold fills them in), and so may columns with a default and
 * nullable ones. `undefined` leaves a column out as well, so that a payload's optional field can be given as it is.
 */
export type RowInputOf<C extends Columns> = Simplify<
  { readonly [N in Exclude<keyof C & string, OptionalColumn<C>>]: InputOf<C[N]> } & {
    readonly [N in OptionalColumn<C>]?: InputOf<C[N]> | undefined;
  }
>;

type IsUnion<T, U = T> = T extends unknown ? ([U] extends [T] ? false : true) : never;

/** What names a row: the key column's value, or an object of them where the key is composite. */
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
    index: ({ search = false }: IndexOptions = {}) => next({ index: true, search }),
    unique: ({ within }: UniqueOptions = {}) =>
      next({ index: true, unique: true, ...(within === undefined ? {} : { within }) }),
    personal: () => next({ personal: true }),
    describe: (description: string) => next({ description }),
    deprecated: (reason: string) => next({ deprecated: reason }),
  };
  return Object.freeze(made) as unknown as Column<Value, Input, false, false>; // the modifiers change only the phantom types
}

const noFlags: ColumnFlags = {
  nullable: false,
  primaryKey: false,
  index: false,
  unique: false,
  search: false,
  personal: false,
  hasDefault: false,
};

export type DecimalInput = Decimal | string | bigint;

/**
 * The column types.
 *
 * | type | in `evolve` | PostgreSQL | GraphQL |
 * | --- | --- | --- | --- |
 * | `text` | string | text | String; ID as a key, as what names one in a relation, or called `id` or `…Id` |
 * | `integer` | number, 32 bits | integer | Int |
 * | `bigint` | bigint | bigint | BigInt, a decimal string |
 * | `decimal(p, s)` | {@link Decimal} | numeric(p, s) | Decimal, an exact string |
 * | `boolean` | boolean | boolean | Boolean |
 * | `uuid` | string | uuid | UUID |
 * | `date` | `'2026-01-31'` | date | Date |
 * | `timestamptz` | ISO 8601 string in UTC | timestamptz | DateTime |
 * | `enum([...])` | union of the values | text with a check | an enum type |
 * | `json<T>()` | T | jsonb | JSON |
 * | `object({...})` | object | jsonb | an object type |
 * | `list(item)` | readonly array | jsonb | a list |
 */
export const t = Object.freeze({
  text: () => column<string, string>({ kind: 'text' }),
  integer: () => column<number, number>({ kind: 'integer' }),
  bigint: () => column<bigint, bigint | number>({ kind: 'bigint' }),
  boolean: () => column<boolean, boolean>({ kind: 'boolean' }),
  uuid: () => column<string, string>({ kind: 'uuid' }),
  date: () => column<string, string>({ kind: 'date' }),
  timestamptz: () => column<string, string>({ kind: 'timestamptz' }),
  json: <T = AnyJson>() => column<JsonOf<T>, JsonOf<T>>({ kind: 'json' }),
  /** Exact: `precision` digits in all, `scale` of them after the point. A value with more digits is refused, never rounded. */
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
      throw invalidDeclaration('t.enum', `'${wrong}' is no GraphQL enum value; use letters, digits and _.`);
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
