import { type RawBuilder, sql } from 'kysely';
import type { ColumnKind } from '../../projections/columns/column.ts';

/** A text in parts: strings for constant text, and SQL expressions that are never null. */
export type TextParts = readonly (string | RawBuilder<unknown>)[];

/** What `evolveSql` may write to a column, beyond what PostgreSQL itself refuses. */
export interface ValueRule {
  /** A SQL condition. */
  readonly fits: string;
  readonly expected: string;
}

/** Everything that SQL needs to know about a kind of column. */
export interface KindInSql {
  /** The type of the column in its table. */
  readonly type: string;
  /** The type to which values are cast. */
  readonly cast: string;
  /** `maxTextBytes`: the maximum of bytes for an indexed text. */
  readonly rule?: (value: string, maxTextBytes: number | undefined) => ValueRule | null;
  /**
   * The JSON of a value that is not null, as the scalar writes it. `isText`: the value is a part of a document, as text. A result of one
   * expression is null for a null value.
   */
  readonly json: (value: RawBuilder<unknown>, isText: boolean) => TextParts;
  /** The JSON of a value as the row codec encodes it. @default as `json` */
  readonly encoded?: (value: RawBuilder<unknown>) => TextParts;
}

/** Text sorts by code point: the same in every database, and the fastest for indexes. */
const textType = 'text collate "C"';
const quoted: KindInSql['json'] = (value) => ['"', value, '"'];
const bare: KindInSql['json'] = (value) => [sql`${value}::text`];
const noScalar: KindInSql['json'] = () => {
  throw new TypeError('A column of an object or a list is not a scalar.');
};
const whole = (value: string): ValueRule => ({ fits: `${value}::bigint = ${value}`, expected: 'a whole number' });

const kinds: Readonly<Record<Exclude<ColumnKind['kind'], 'decimal' | 'bytes'>, KindInSql>> = {
  text: {
    type: textType,
    cast: 'text',
    rule: (value, maxTextBytes) =>
      maxTextBytes === undefined
        ? null
        : {
            fits: `octet_length(${value}::text) <= ${maxTextBytes}`,
            expected: `at most ${maxTextBytes} bytes in an indexed text`,
          },
    json: (value) => [sql`to_json(${value})::text`],
  },
  enum: { type: textType, cast: 'text', json: quoted },
  integer: { type: 'integer', cast: 'integer', rule: whole, json: bare },
  bigint: { type: 'bigint', cast: 'bigint', rule: whole, json: quoted },
  boolean: { type: 'boolean', cast: 'boolean', json: bare },
  uuid: { type: 'uuid', cast: 'uuid', json: quoted },
  date: {
    type: 'date',
    cast: 'date',
    rule: (value) => ({
      fits: `${value}::date between '0001-01-01' and '9999-12-31'`,
      expected: 'a date from year 1 to 9999',
    }),
    json: quoted,
  },
  timestamptz: {
    type: 'timestamptz',
    cast: 'timestamptz',
    rule: (value) => ({
      fits: `${value}::timestamptz between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00'`,
      expected: 'a time from year 1 to 9999',
    }),
    json: (value, isText) => ['"', isText ? value : timestampText(value), '"'],
  },
  json: { type: 'jsonb', cast: 'jsonb', json: bare },
  object: { type: 'jsonb', cast: 'jsonb', json: noScalar },
  list: { type: 'jsonb', cast: 'jsonb', json: noScalar },
};

export function kindInSql(type: ColumnKind): KindInSql {
  if (type.kind === 'decimal') return decimalInSql(type.precision, type.scale);
  return type.kind === 'bytes' ? bytesInSql(type.maxBytes) : kinds[type.kind];
}

function bytesInSql(maxBytes: number): KindInSql {
  return {
    type: 'bytea',
    cast: 'bytea',
    rule: (value) => ({
      fits: `octet_length(${value}::bytea) <= ${maxBytes}`,
      expected: `at most ${maxBytes} bytes`,
    }),
    // PostgreSQL breaks base64 into lines. A document has the text of the bytes.
    json: (value) => ['"', sql`translate(encode(${value}::bytea, 'base64'), E'\\n', '')`, '"'],
    encoded: (value) => ['"\\\\x', sql`encode(${value}, 'hex')`, '"'],
  };
}

function decimalInSql(precision: number, scale: number): KindInSql {
  return {
    type: `numeric(${precision}, ${scale})`,
    // Without a scale: a value with more digits is compared as it is, not rounded.
    cast: 'numeric',
    rule: (value) => ({
      // The written scale is stored with the value; the minimum scale must be computed.
      fits: `scale(${value}::numeric) <= ${scale} or min_scale(${value}::numeric) <= ${scale}`,
      expected: `a decimal with at most ${scale} digits after the point (round it, or widen the column)`,
    }),
    json: (value, isText) => [
      '"',
      isText ? sql`${value}::numeric(${sql.lit(precision)}, ${sql.lit(scale)})` : value,
      '"',
    ],
    encoded: (value) => ['"', sql`trim_scale(${value})`, '"'],
  };
}

/** At least milliseconds, microseconds if they are not zero. The same as the row codec. */
export function timestampText(value: RawBuilder<unknown>): RawBuilder<unknown> {
  const time = sql`${value} at time zone 'UTC'`;
  return sql`case when date_trunc('milliseconds', ${value}) = ${value}
    then to_char(${time}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    else concat(rtrim(to_char(${time}, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), 'Z') end`;
}
