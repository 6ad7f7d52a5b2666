import { type RawBuilder, sql } from 'kysely';
import type { Column } from '../../projections/columns/column.ts';
import type { ColumnPart, ConstantPart, Members } from '../../projections/queries/response-query.ts';
import { kindInSql, type TextParts } from '../columns/column-sql.ts';

// PostgreSQL functions accept at most a hundred arguments.
const maxArguments = 90;

/** `concat` of the parts: the cheapest way to join texts in PostgreSQL. */
export function textOf(parts: TextParts): RawBuilder<string> {
  const merged: (string | RawBuilder<unknown>)[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (typeof part === 'string' && typeof last === 'string') merged[merged.length - 1] = last + part;
    else if (part !== '') merged.push(part);
  }
  return concat(merged.map((part) => (typeof part === 'string' ? sql`${sql.lit(part)}` : part)));
}

function concat(parts: readonly RawBuilder<unknown>[]): RawBuilder<string> {
  if (parts.length <= maxArguments) return sql<string>`concat(${parts.length === 0 ? sql`''` : sql.join([...parts])})`;
  const groups = Array.from({ length: Math.ceil(parts.length / maxArguments) }, (_, index) =>
    concat(parts.slice(index * maxArguments, (index + 1) * maxArguments)),
  );
  return concat(groups);
}

/** A JSON object whose member values are texts in parts. */
export function objectParts<Part>(members: Members<Part>, partsOf: (part: Part) => TextParts): TextParts {
  return [
    '{',
    ...members.flatMap(([key, part], index) => [`${index === 0 ? '' : ','}${JSON.stringify(key)}:`, ...partsOf(part)]),
    '}',
  ];
}

/** A value of a column, or a part of one, to write as JSON. */
export interface JsonColumnValue {
  readonly column: Column;
  /** The value with its own type: the column's type, or `jsonb` for a part of a document. */
  readonly value: RawBuilder<unknown>;
  /** The value as text, for a part of a document; undefined for a column. */
  readonly text: RawBuilder<unknown> | undefined;
  readonly depth: number;
}

/** The JSON of a value: `null` if it is null. */
export function valueParts(given: JsonColumnValue, members: ColumnPart['members']): TextParts {
  const { column, value, text, depth } = given;
  const { type } = column;
  if (type.kind === 'list') return [listText(given, type.item, members)];
  if (type.kind === 'object') {
    const fields = (members ?? []).map(([key, part]) => [key, part] as const);
    const object = objectParts(fields, (part) => memberParts(part, type.fields, value, depth));
    return [sql`case when jsonb_typeof(${value}) = 'object' then ${textOf(object)} else 'null' end`];
  }
  // The text form of a string in a document lacks quotes.
  const source = type.kind === 'json' ? value : (text ?? value);
  const written = kindInSql(type).json(source, text !== undefined);
  // A document's parts have no null constraint.
  if (!column.flags.nullable && text === undefined) return written;
  const [only, ...others] = written;
  if (typeof only === 'object' && others.length === 0) return [sql`coalesce(${only}, 'null')`];
  return [sql`case when ${source} is null then 'null' else ${textOf(written)} end`];
}

function memberParts(
  part: ConstantPart | ColumnPart,
  fields: Readonly<Record<string, Column>>,
  value: RawBuilder<unknown>,
  depth: number,
): TextParts {
  if (part.kind === 'constant') return [part.json];
  const name = sql.lit(part.name);
  return valueParts(
    {
      column: fields[part.name] as Column,
      value: sql`(${value} -> ${name})`,
      text: sql`(${value} ->> ${name})`,
      depth,
    }, // selected of its type
    part.members,
  );
}

function listText(
  { value, depth }: JsonColumnValue,
  item: Column,
  members: ColumnPart['members'],
): RawBuilder<unknown> {
  const elements = sql.ref(`elements_${depth}`);
  const [one, place] = [sql`${elements}.value`, sql`${elements}.place`];
  const text = textOf(
    valueParts({ column: item, value: one, text: sql`(${one} #>> '{}')`, depth: depth + 1 }, members),
  );
  return sql`case when jsonb_typeof(${value}) = 'array' then concat('[', (
    select string_agg(${text}, ',' order by ${place})
    from jsonb_array_elements(${value}) with ordinality as ${elements} (value, place)
  ), ']') else 'null' end`;
}

/**
 * The encoding of a key or an order value as the row codec writes it, with exactly the bytes of `JSON.stringify`. Cursors and global ids
 * contain it. Null becomes `null`.
 */
export function encodedParts(column: Column, value: RawBuilder<unknown>): TextParts {
  const { encoded, json } = kindInSql(column.type);
  const written = encoded ? encoded(value) : json(value, false);
  return column.flags.nullable ? [sql`case when ${value} is null then 'null' else ${textOf(written)} end`] : written;
}

/** Encodes a text as base64url. */
export function base64url(text: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`translate(encode(convert_to(${text}, 'UTF8'), 'base64'), E'+/=\\n', '-_')`;
}
