import pg from 'pg';

type Parser = (text: string) => unknown;

/**
 * Parses column texts to values: integers and floats to numbers, `bigint` to bigint, `numeric` to its exact text, dates to `YYYY-MM-DD`,
 * timestamps with time zone to canonical ISO 8601 (see {@link isoTimestamp}), JSON to its value, all other types to text.
 *
 * Passed to each pool, which leaves other users of `pg` in the process unaffected.
 */
export const columnParsers: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: string) => {
    if (format === 'binary') return pg.types.getTypeParser(oid, 'binary');
    return parsers.get(oid) ?? text;
  }) as typeof pg.types.getTypeParser, // the overloads differ only in the parser's result
};

/**
 * Like {@link columnParsers}, but numbers in JSON keep the digits that a JavaScript number can't hold: such a number is a value that
 * `JSON.stringify` writes as it is. For answers. Only SQL writes such numbers.
 */
export const exactJsonParsers: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === jsonbOid ? exactJson : columnParsers.getTypeParser(oid, format)) as typeof pg.types.getTypeParser, // as above
};

/**
 * Converts PostgreSQL's text of a `timestamptz` (session in UTC, ISO style) to `YYYY-MM-DDTHH:MM:SS.fff[fff]Z`: at least three digits of
 * the fraction, and no trailing zeros after them, so equal times have equal texts. `infinity` and years BC are unchanged.
 */
export function isoTimestamp(text: string): string {
  if (!text.endsWith('+00')) return text;
  const end = text.length - 3;
  const dot = text.indexOf('.');
  const seconds = dot < 0 ? end : dot;
  const space = text.indexOf(' ');
  const fraction = dot < 0 ? '000' : text.slice(dot + 1, end).padEnd(3, '0');
  return `${text.slice(0, space)}T${text.slice(space + 1, seconds)}.${fraction}Z`;
}

const text: Parser = (value) => value;
const boolean: Parser = (value) => value === 't';
const json: Parser = (value) => JSON.parse(value);
const jsonbOid = 3802;

// Up to 15 digits, a number is exact.
const longNumber = /[\d.]{16}/;

// The types lack both: the source text of a value, and values with a source text.
const { parse, rawJSON } = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(source: string): object;
};

/** Parses JSON in which numbers keep all digits when they are written as JSON again. */
export function exactJson(value: string): unknown {
  if (!longNumber.test(value)) return json(value);
  return parse(value, (_, part, { source }) =>
    typeof part === 'number' && source !== undefined && String(part) !== source ? rawJSON(source) : part,
  );
}

/** The oid of each type, the oid of its array type, and its parser. */
const scalars: readonly (readonly [oid: number, arrayOid: number, parser: Parser])[] = [
  [16, 1000, boolean], // bool
  [17, 1001, (value) => pg.types.getTypeParser(17, 'text')(value)], // bytea
  [20, 1016, BigInt], // int8
  [21, 1005, Number], // int2
  [23, 1007, Number], // int4
  [26, 1028, Number], // oid
  [25, 1009, text], // text
  [114, 199, json], // json
  [700, 1021, Number], // float4
  [701, 1022, Number], // float8
  [1042, 1014, text], // char(n)
  [1043, 1015, text], // varchar
  [1082, 1182, text], // date
  [1114, 1115, text], // timestamp
  [1184, 1185, isoTimestamp], // timestamptz
  [1700, 1231, text], // numeric
  [2950, 2951, text], // uuid
  [jsonbOid, 3807, json], // jsonb
];

const parsers = new Map<number, Parser>(
  scalars.flatMap(([oid, arrayOid, parser]) => [
    [oid, parser],
    [arrayOid, (value: string) => parseArray(value, parser)],
  ]),
);

/** Parses PostgreSQL's text of an array, such as `{1,NULL,"a \"b\""}` or `{{1,2},{3,4}}`. */
export function parseArray(source: string, parse: Parser): unknown[] {
  // Arrays whose first index is not 1 start with their bounds: [0:1]={…}.
  let at = source.indexOf('{');
  return array();

  function array(): unknown[] {
    const items: unknown[] = [];
    at++;
    while (source[at] !== '}') {
      if (source[at] === '{') items.push(array());
      else if (source[at] === '"') items.push(parse(quoted()));
      else items.push(plain());
      if (source[at] === ',') at++;
    }
    at++;
    return items;
  }

  function quoted(): string {
    let value = '';
    for (at++; source[at] !== '"'; at++) {
      if (source[at] === '\\') at++;
      value += source[at];
    }
    at++;
    return value;
  }

  function plain(): unknown {
    const start = at;
    while (source[at] !== ',' && source[at] !== '}') at++;
    const value = source.slice(start, at);
    return value === 'NULL' ? null : parse(value);
  }
}
