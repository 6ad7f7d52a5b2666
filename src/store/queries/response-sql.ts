import { type RawBuilder, sql } from 'kysely';
import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type {
  EdgePart,
  Members,
  PageInfoPart,
  PagePart,
  ResponseQuery,
  ResponseRead,
  ResponseShape,
  RootPart,
  RowPart,
} from '../../projections/queries/response-query.ts';
import type { TextParts } from '../columns/column-sql.ts';
import { builder } from '../statements/statement.ts';
import { boundArray, boundValue, compared, placeRef } from '../tables/row-values.ts';
import { aggregateParts } from './aggregate-json.ts';
import { aggregateStatement } from './aggregate-rows.ts';
import { base64url, encodedParts, objectParts, textOf, valueParts } from './json-text.ts';
import { always, filterSql } from './row-filter.ts';
import { countOf, pageStatement, rowsFrom } from './row-queries.ts';

type Text = RawBuilder<string>;
type ReadOf<Kind extends ResponseRead['kind']> = Extract<ResponseRead, { readonly kind: Kind }>;

/** The state of building one response's SQL: its reads, and a counter for table aliases. */
interface Making {
  readonly readSchema: string;
  readonly reads: readonly ResponseRead[];
  names: number;
}

/** One statement with one value: the JSON of all root fields. Non-null fields are never null in it. */
export function responseSql(readSchema: string, { shape, reads }: ResponseQuery) {
  return sql<{ answer: string }>`select ${answerText(readSchema, shape, reads)} as answer`.compile(builder);
}

/** Several responses of one shape in one row: `answer_0`, `answer_1` and so on. */
export function answersSql(readSchema: string, shape: ResponseShape, all: readonly (readonly ResponseRead[])[]) {
  const answers = all.map(
    (reads, index) => sql`${answerText(readSchema, shape, reads)} as ${sql.ref(`answer_${index}`)}`,
  );
  return sql<Record<string, string>>`select ${sql.join(answers)}`.compile(builder);
}

function answerText(readSchema: string, shape: ResponseShape, reads: readonly ResponseRead[]): Text {
  const making: Making = { readSchema, reads, names: 0 };
  return textOf(objectParts(shape.roots, (part) => rootParts(part, making)));
}

/**
 * The rows of many keys, each as JSON with the index of its key. For lookups that share a statement. Each key value is bound as an array.
 */
export function batchedSql(readSchema: string, row: Members<RowPart>, reads: readonly ResponseRead[], at: number) {
  const making: Making = { readSchema, reads, names: 0 };
  const read = readAt(making, at, 'row');
  const { projection, by, key } = read;
  const keys = key.map((values, index) => boundArray(projection, by[index] as string, [values])); // same length
  const names = by.map((_, index) => sql.ref(`key_${index}`));
  const table = nextName(making);
  const found = rowsFrom(readSchema, projection, read.columns.length > 0 ? read.columns : by)
    .where(filterSql(projection, read.where, readSchema))
    .where(sameAs(projection, by, (index) => sql`keys.${names[index]}`));
  return sql<{ place: bigint; answer: string }>`
    select keys.place, ${rowText(row, projection, table, making)} as answer
    from unnest(${sql.join(keys)}) with ordinality as keys (${sql.join(names)}, place)
    cross join lateral (${found}) as ${sql.ref(table)}`.compile(builder);
}

function rootParts(part: RootPart, making: Making): TextParts {
  switch (part.kind) {
    case 'constant':
      return [part.json];
    case 'row': {
      const read = readAt(making, part.read, 'row');
      const { projection, by, key } = read;
      const value = (index: number) => boundValue(projection, by[index] as string, key[index]); // same length
      return [oneText(part.row, read, by, value, making)];
    }
    case 'page':
      return [pageText(part.page, readAt(making, part.read, 'page'), always, making)];
    case 'aggregate':
    case 'groups': {
      const { projection, query, by } = readAt(making, part.read, 'aggregate');
      const table = nextName(making);
      const numbers = textOf(aggregateParts(part.members, projection, query, by, table));
      const found = sql`from (${aggregateStatement(making.readSchema, projection, query)}) as ${sql.ref(table)}`;
      if (part.kind === 'aggregate') return [sql`(select ${numbers} ${found})`];
      return ['[', sql`(select string_agg(${numbers}, ',') ${found})`, ']'];
    }
  }
}

/** The JSON of the row whose columns have these values, or `null`. */
function oneText(
  row: Members<RowPart>,
  { projection, columns, where }: ReadOf<'row' | 'one'>,
  by: readonly string[],
  value: (index: number) => RawBuilder<unknown>,
  making: Making,
): Text {
  const table = nextName(making);
  const found = rowsFrom(making.readSchema, projection, columns.length > 0 ? columns : by)
    .where(filterSql(projection, where, making.readSchema))
    .where(sameAs(projection, by, value));
  return sql`coalesce((select ${rowText(row, projection, table, making)} from (${found}) as ${sql.ref(table)}), 'null')`;
}

function sameAs(
  projection: Projection,
  by: readonly string[],
  value: (index: number) => RawBuilder<unknown>,
): RawBuilder<boolean> {
  const equal = by.map((name, index) => compared(projection, name, '=', value(index)));
  return sql`(${sql.join(equal, sql` and `)})`;
}

function rowText(row: Members<RowPart>, projection: Projection, table: string, making: Making): Text {
  return textOf(rowParts(row, projection, table, making));
}

function rowParts(row: Members<RowPart>, projection: Projection, table: string, making: Making): TextParts {
  const { columns, keyColumns, name } = projection;
  const of = (column: string) => sql.ref(`${table}.${column}`);
  return objectParts(row, (part): TextParts => {
    switch (part.kind) {
      case 'constant':
        return [part.json];
      case 'column':
        return valueParts(
          { column: columns[part.name] as Column, value: of(part.name), text: undefined, depth: making.names++ }, // selected of its type
          part.members,
        );
      case 'globalId': {
        const parts = encodedList([1, name], keyColumns, projection, table);
        return ['"', base64url(textOf(parts)), '"'];
      }
      case 'one': {
        const read = readAt(making, part.read, 'one');
        return [
          oneText(part.row, read, read.projection.keyColumns, (index) => of(part.from[index] as string), making), // same length
        ];
      }
      case 'many': {
        const read = readAt(making, part.read, 'page');
        const related = compared(read.projection, part.to, '=', of(part.from));
        return [pageText(part.page, read, related, making)];
      }
    }
  });
}

/** The text that `JSON.stringify` writes for the list of the given values and the row's columns. */
function encodedList(
  given: readonly unknown[],
  columns: readonly string[],
  projection: Projection,
  table: string,
): TextParts {
  return [
    JSON.stringify(given).slice(0, -1),
    ...columns.flatMap((name) => [
      ',',
      // columns of the projection
      ...encodedParts(projection.columns[name] as Column, placeRef(projection, name, sql.ref(`${table}.${name}`))),
    ]),
    ']',
  ];
}

/** A page as one aggregate over its rows. The last row and the existence of more rows are computed only if the page info is selected. */
function pageText(
  members: Members<PagePart>,
  read: ReadOf<'page'>,
  related: RawBuilder<boolean>,
  making: Making,
): Text {
  const { projection, query, order } = read;
  const { readSchema } = making;
  const hasPageInfo = members.some(([, { kind }]) => kind === 'pageInfo');
  const numbered = hasPageInfo || query.direction === 'backward';
  const [rows, page] = [nextName(making), nextName(making)];
  const cursor = base64url(
    textOf(
      encodedList([order], [...query.orderBy.map(({ column }) => column), ...projection.keyColumns], projection, rows),
    ),
  );
  const items: RawBuilder<unknown>[] = [];
  let reads = false;
  /** The texts of all rows, in the order of the list. */
  const listOf = (parts: TextParts): TextParts => {
    reads = true;
    if (!numbered) return ['[', sql`string_agg(${textOf(parts)}, ',')`, ']'];
    const item = sql.ref(`item_${items.push(textOf(parts)) - 1}`);
    const direction = sql.raw(query.direction === 'forward' ? 'asc' : 'desc');
    return [
      '[',
      sql`string_agg(${item}, ',' order by place ${direction}) filter (where place <= ${sql.lit(query.limit)})`,
      ']',
    ];
  };
  const text = objectParts(members, (part): TextParts => {
    switch (part.kind) {
      case 'constant':
        return [part.json];
      case 'nodes':
        return listOf(rowParts(part.row, projection, rows, making));
      case 'edges':
        return listOf(objectParts(part.members, (edge) => edgeParts(edge, cursor, projection, rows, making)));
      case 'pageInfo':
        return objectParts(part.members, (info) => {
          const parts = pageInfoParts(info, query);
          if (parts.some((one) => typeof one !== 'string')) reads = true;
          return parts;
        });
      case 'totalCount': {
        const table = sql.id(readSchema, projection.tableName);
        const condition = sql<boolean>`(${related} and ${filterSql(projection, query.where, readSchema)})`;
        return [sql`(${countOf(table, condition, part.upTo)})`];
      }
    }
  });
  // A select of constants only is not an aggregate, and would return one text per row.
  if (!reads) return textOf(text);
  const statement = pageStatement(readSchema, projection, query, query.limit + (hasPageInfo ? 1 : 0)).statement.where(
    related,
  );
  if (!numbered) return sql`(select ${textOf(text)} from (${statement}) as ${sql.ref(rows)})`;
  const selected = [
    ...items.map((item, index) => sql`${item} as ${sql.ref(`item_${index}`)}`),
    ...(hasPageInfo ? [sql`${cursor} as row_cursor`] : []),
  ];
  return sql`(
    select ${textOf(text)}
    from (
      select ${sql.join([...selected, sql`row_number() over () as place`, sql`count(*) over () as found`])}
      from (${statement}) as ${sql.ref(rows)}
    ) as ${sql.ref(page)}
  )`;
}

function edgeParts(
  part: EdgePart,
  cursor: RawBuilder<unknown>,
  projection: Projection,
  rows: string,
  making: Making,
): TextParts {
  switch (part.kind) {
    case 'constant':
      return [part.json];
    case 'cursor':
      return ['"', cursor, '"'];
    case 'node':
      return rowParts(part.row, projection, rows, making);
  }
}

/** Reads the numbered rows of a page. They are one more than the limit if there are more. */
function pageInfoParts(part: PageInfoPart, { direction, limit, after, before }: ReadOf<'page'>['query']): TextParts {
  const forward = direction === 'forward';
  const most = sql.lit(limit);
  const more = sql`case when count(*) > ${most} then 'true' else 'false' end`;
  const cursorAt = (first: boolean): TextParts => {
    const place = first === forward ? sql`1` : sql`least(found, ${most})`;
    const cursor = sql`max(row_cursor) filter (where place = ${place} and place <= ${most})`;
    return [sql`coalesce('"' || ${cursor} || '"', 'null')`];
  };
  switch (part.kind) {
    case 'constant':
      return [part.json];
    case 'hasNextPage':
      return forward ? [more] : [String(before !== null)];
    case 'hasPreviousPage':
      return forward ? [String(after !== null)] : [more];
    case 'startCursor':
      return cursorAt(true);
    case 'endCursor':
      return cursorAt(false);
  }
}

function readAt<Kind extends ResponseRead['kind']>({ reads }: Making, at: number, kind: Kind): ReadOf<Kind> {
  const read = reads[at];
  if (read?.kind !== kind) throw new TypeError(`Read ${at} of an answer is of kind '${read?.kind}', not '${kind}'.`);
  return read as ReadOf<Kind>; // checked above
}

function nextName(making: Making): string {
  return `part_${++making.names}`;
}
