import { type RawBuilder, sql } from 'kysely';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { type Column, type ColumnKind, isContainer } from '../../projections/columns/column.ts';
import { type Decimal, decimal, isDecimal } from '../../projections/columns/decimal.ts';
import { problemOf } from '../../projections/columns/invalid-row.ts';
import { createRowCodec, type RowCodec } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/declaration/projection.ts';
import type { JsonValue } from '../../projections/queries/row-query.ts';
import { Slot } from './slots.ts';

/** The declared column; what a client names wrongly is its mistake, not the server's. */
export function columnOf(projection: Projection, name: string): Column {
  const column = Object.hasOwn(projection.columns, name) ? projection.columns[name] : undefined;
  if (column) return column;
  const problem = `${projection.id} has no column '${name}'.${closest(name, Object.keys(projection.columns))}`;
  throw new RefoldError('BAD_USER_INPUT', problem, { column: name });
}

/** A column by its SQL name, quoted. */
export function columnRef(projection: Projection, name: string): RawBuilder<unknown> {
  columnOf(projection, name);
  return sql.ref(projection.sqlNames[name] as string); // one name for each column
}

/**
 * A column as it is compared and sorted: text by code points, whatever the database's locale, so that the order is the same
 * everywhere and an index in collation "C" serves it.
 */
export function comparableRef(projection: Projection, name: string): RawBuilder<unknown> {
  const { kind } = columnOf(projection, name).type;
  const ref = columnRef(projection, name);
  return kind === 'text' || kind === 'enum' ? sql`${ref} collate "C"` : ref;
}

/** The SQL of a text as it is compared in upper and lower case alike; see `withoutCase`. */
export function foldedSql(text: string): string {
  return `upper(${text} collate "und-x-icu")`;
}

export function foldedRef(text: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`upper(${text} collate "und-x-icu")`;
}

/** The type that values of a column are cast to. A decimal has no scale here: a bound with more digits is compared, not rounded. */
export function sqlType({ kind }: ColumnKind): string {
  switch (kind) {
    case 'enum':
      return 'text';
    case 'decimal':
      return 'numeric';
    case 'json':
    case 'object':
    case 'list':
      return 'jsonb';
    case 'text':
    case 'integer':
    case 'bigint':
    case 'boolean':
    case 'uuid':
    case 'date':
    case 'timestamptz':
      return kind;
  }
}

/** A value of a scalar column, bound. @throws RefoldError `BAD_USER_INPUT` for what the column could never hold. */
export function boundValue(projection: Projection, name: string, value: unknown): RawBuilder<unknown> {
  const { type } = scalarColumn(projection, name);
  return sql`cast(${encoded(projection, name, value)} as ${sql.raw(sqlType(type))})`;
}

/** Values of a scalar column, bound as one array; one slot stands for all of them. */
export function boundArray(projection: Projection, name: string, values: readonly unknown[]): RawBuilder<unknown> {
  const { type } = scalarColumn(projection, name);
  const [only] = values;
  const list = only instanceof Slot ? only : values.map((value) => encoded(projection, name, value));
  return sql`cast(${list} as ${sql.raw(sqlType(type))}[])`;
}

/** What may be in a list, an object or JSON, bound. @throws RefoldError `BAD_USER_INPUT` for a column of another kind */
export function boundJson(projection: Projection, name: string, value: JsonValue | Slot): RawBuilder<unknown> {
  if (isContainer(columnOf(projection, name)))
    return sql`cast(${value instanceof Slot ? value : JSON.stringify(value)} as jsonb)`;
  throw badValue(name, `column '${name}' is no list, object or JSON; nothing is in it.`);
}

/** A key in its canonical form; `by`: the columns that it is of. @throws RefoldError `BAD_USER_INPUT` */
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

/** A value in the form that it is bound in. @throws RefoldError `BAD_USER_INPUT` for what the column could never hold. */
export function encoded(projection: Projection, name: string, value: unknown): unknown {
  if (value instanceof Slot) return value;
  return projection.codec.encodeValue(name, canonicalValue(projection, name, value));
}

function canonicalValue(projection: Projection, name: string, value: unknown): unknown {
  const { type } = columnOf(projection, name);
  if (value === undefined) throw badValue(name, `column '${name}' expects a value.`);
  if (value === null) throw badValue(name, `column '${name}' can't be compared with null.`);
  if (type.kind === 'decimal') return decimalBound(name, value);
  const canonical = byCodec(projection, name, value);
  // PostgreSQL has no year 0, and a canonical text has four digits for the year.
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

// Comparisons take decimals with more digits than the column holds, but PostgreSQL's numeric ends somewhere.
const mostDigits = 1000;

function decimalBound(name: string, value: unknown): Decimal {
  const given = typeof value === 'string' || typeof value === 'bigint' || typeof value === 'number' || isDecimal(value);
  if (!given) throw badValue(name, `column '${name}' expects a decimal.`);
  try {
    const exact = decimal(value);
    if (Math.abs(exact.e) + exact.c.length <= mostDigits) return exact;
  } catch (cause) {
    throw badValue(name, `column '${name}' expects a decimal such as '12.50'.`, cause);
  }
  throw badValue(name, `column '${name}' expects a decimal of at most ${mostDigits} digits.`);
}

function scalarColumn(projection: Projection, name: string): Column {
  const column = columnOf(projection, name);
  if (!isContainer(column)) return column;
  throw badValue(name, `column '${name}' is ${column.type.kind}; it can't be compared or sorted by.`);
}

// The codec checks whole rows and keys: a codec of one column, taken as the key, checks one value.
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
