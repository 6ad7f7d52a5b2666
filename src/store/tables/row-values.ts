import { type RawBuilder, sql } from 'kysely';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { type Column, isContainer } from '../../projections/columns/column.ts';
import { type Decimal, decimal, isDecimal } from '../../projections/columns/decimal.ts';
import { problemOf } from '../../projections/columns/invalid-row.ts';
import { createRowCodec, type RowCodec } from '../../projections/columns/row-codec.ts';
import { isLongText, longestPlace } from '../../projections/columns/text-limits.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { JsonValue } from '../../projections/queries/row-query.ts';
import { kindInSql } from '../columns/column-sql.ts';
import { Placeholder } from './placeholders.ts';

/** The declared column. An unknown name is an error of the client, not of the server. */
export function columnOf(projection: Projection, name: string): Column {
  const column = Object.hasOwn(projection.columns, name) ? projection.columns[name] : undefined;
  if (column) return column;
  const problem = `${projection.id} has no column '${name}'.${closest(name, Object.keys(projection.columns))}`;
  throw new RefoldError('BAD_USER_INPUT', problem, { column: name });
}

/** A column by its quoted SQL name. */
export function columnRef(projection: Projection, name: string): RawBuilder<unknown> {
  columnOf(projection, name);
  return sql.ref(projection.sqlNames[name] as string); // one name for each column
}

/**
 * A column for comparisons. Text compares by code points, independent of the database's locale: the order is the same
 * everywhere, and an index with collation "C" supports it.
 */
export function comparableRef(projection: Projection, name: string): RawBuilder<unknown> {
  const { kind } = columnOf(projection, name).type;
  const ref = columnRef(projection, name);
  return kind === 'text' || kind === 'enum' ? sql`${ref} collate "C"` : ref;
}

/** What rows are sorted by: the value of a column, or of a long text its first characters. See `placeOf`. */
export function placeRef(
  projection: Projection,
  name: string,
  ref: RawBuilder<unknown> = comparableRef(projection, name),
): RawBuilder<unknown> {
  return isLongText(columnOf(projection, name)) ? placeSql(ref) : ref;
}

/** A value of a cursor. One that an earlier release wrote may hold a whole long text. */
export function boundPlace(projection: Projection, name: string, value: unknown): RawBuilder<unknown> {
  return placeRef(projection, name, boundValue(projection, name, value));
}

/** The index of a long text holds this expression. */
function placeSql(text: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`left(${text}, ${sql.lit(longestPlace)})`;
}

export type Sign = '=' | '<>' | '<' | '<=' | '>' | '>=';

/** Compares a column with a value of its kind. For a long text, compares the places first, which its index serves. */
export function compared(
  projection: Projection,
  name: string,
  sign: Sign,
  value: RawBuilder<unknown>,
  ref: RawBuilder<unknown> = comparableRef(projection, name),
): RawBuilder<boolean> {
  const exact = sql<boolean>`${ref} ${sql.raw(sign)} ${value}`;
  if (sign === '<>' || !isLongText(columnOf(projection, name))) return exact;
  // Of two texts in order, the places are in order, too, or equal.
  const ofPlaces = sql.raw(sign === '<' || sign === '>' ? `${sign}=` : sign);
  return sql<boolean>`(${placeSql(ref)} ${ofPlaces} ${placeSql(value)} and ${sign === '=' ? implied(exact) : exact})`;
}

/** Whether a column has one of the values of an array. */
export function comparedWithAny(
  projection: Projection,
  name: string,
  values: RawBuilder<unknown>,
): RawBuilder<boolean> {
  const exact = sql<boolean>`${columnRef(projection, name)} = any(${values})`;
  if (!isLongText(columnOf(projection, name))) return exact;
  const places = sql`array(select ${placeSql(sql`value`)} from unnest(${values}) as value)`;
  return sql<boolean>`(${placeRef(projection, name)} = any(${places}) and ${implied(exact)})`;
}

/** Most texts with the same place are equal. The planner would take both conditions for independent, and sort a page of "few" rows. */
function implied(exact: RawBuilder<boolean>): RawBuilder<boolean> {
  return sql`coalesce(${exact}, false)`;
}

/** The SQL of a text for case-insensitive comparison; see `withoutCase`. */
export function caseInsensitiveSql(text: string): string {
  return `upper(${text} collate "und-x-icu")`;
}

export function caseInsensitiveRef(text: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`upper(${text} collate "und-x-icu")`;
}

/** A bound value of a scalar column. @throws RefoldError `BAD_USER_INPUT` for a value that the column cannot hold. */
export function boundValue(projection: Projection, name: string, value: unknown): RawBuilder<unknown> {
  const { type } = scalarColumn(projection, name);
  return sql`cast(${encoded(projection, name, value)} as ${sql.raw(kindInSql(type).cast)})`;
}

/** Values of a scalar column, bound as one array; one parameter stands for all of them. */
export function boundArray(projection: Projection, name: string, values: readonly unknown[]): RawBuilder<unknown> {
  const { type } = scalarColumn(projection, name);
  const [only] = values;
  const list = only instanceof Placeholder ? only : values.map((value) => encoded(projection, name, value));
  return sql`cast(${list} as ${sql.raw(kindInSql(type).cast)}[])`;
}

/** A bound value to search for in a list, an object or JSON. @throws RefoldError `BAD_USER_INPUT` for a column of another kind */
export function boundJson(projection: Projection, name: string, value: JsonValue | Placeholder): RawBuilder<unknown> {
  if (isContainer(columnOf(projection, name)))
    return sql`cast(${value instanceof Placeholder ? value : JSON.stringify(value)} as jsonb)`;
  throw badValue(name, `column '${name}' is not a list, an object or JSON and has no contents to search.`);
}

/** A key in canonical form. `by`: the columns of the key. @throws RefoldError `BAD_USER_INPUT` */
export function canonicalKey(
  projection: Projection,
  key: RowKey,
  by: readonly string[] = projection.keyColumns,
): RowKey {
  if (key.length !== by.length) {
    const expected = by.join(', ');
    throw new RefoldError('BAD_USER_INPUT', `A key of ${projection.id} is (${expected}), found ${key.length} values.`);
  }
  return by.map((name, index) => canonicalValue(projection, name, key[index]));
}

/** A value in the form in which it is bound. @throws RefoldError `BAD_USER_INPUT` for a value that the column cannot hold. */
export function encoded(projection: Projection, name: string, value: unknown): unknown {
  if (value instanceof Placeholder) return value;
  return projection.codec.encodeValue(name, canonicalValue(projection, name, value));
}

function canonicalValue(projection: Projection, name: string, value: unknown): unknown {
  const { type } = columnOf(projection, name);
  if (value === undefined) throw badValue(name, `column '${name}' expects a value.`);
  if (value === null) throw badValue(name, `column '${name}' can't be compared with null.`);
  if (type.kind === 'decimal') return decimalBound(name, value);
  const canonical = byCodec(projection, name, value);
  // PostgreSQL has no year 0, and canonical text has four digits for the year.
  if ((type.kind === 'date' || type.kind === 'timestamptz') && !/^(?!0000)\d{4}-/.test(canonical as string)) {
    throw badValue(name, `column '${name}' expects a year from 1 to 9999.`);
  }
  return canonical;
}

function byCodec(projection: Projection, name: string, value: unknown): unknown {
  try {
    return scalarCodec(projection, name).normaliseKey([value])[0];
  } catch (cause) {
    if (!(cause instanceof RefoldError)) throw cause;
    throw badValue(name, problemOf(cause), cause);
  }
}

// Comparisons accept decimals with more digits than the column holds. PostgreSQL's numeric has a limit.
const maxDigits = 1000;

function decimalBound(name: string, value: unknown): Decimal {
  const given = typeof value === 'string' || typeof value === 'bigint' || typeof value === 'number' || isDecimal(value);
  if (!given) throw badValue(name, `column '${name}' expects a decimal.`);
  try {
    const exact = decimal(value);
    if (Math.abs(exact.e) + exact.c.length <= maxDigits) return exact;
  } catch (cause) {
    throw badValue(name, `column '${name}' expects a decimal such as '12.50'.`, cause);
  }
  throw badValue(name, `column '${name}' expects a decimal of at most ${maxDigits} digits.`);
}

function scalarColumn(projection: Projection, name: string): Column {
  const column = columnOf(projection, name);
  if (!isContainer(column)) return column;
  throw badValue(name, `column '${name}' is ${column.type.kind}; it can't be compared or sorted by.`);
}

// The codec checks whole rows and keys. A codec for one column, used as the key, checks a single value.
const scalarCodecs = new WeakMap<Column, RowCodec>();

function scalarCodec(projection: Projection, name: string): RowCodec {
  const column = columnOf(projection, name);
  const known = scalarCodecs.get(column);
  if (known) return known;
  const codec = createRowCodec({ [name]: column }, [name], {});
  scalarCodecs.set(column, codec);
  return codec;
}

function badValue(column: string, problem: string, cause?: unknown): RefoldError {
  return new RefoldError('BAD_USER_INPUT', problem, { column }, { cause });
}
