import type { Row } from '../../projections/columns/row-codec.ts';
import { largeColumns } from '../../projections/columns/row-size.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { kindInSql } from '../columns/column-sql.ts';
import { qualified, quoted } from '../statements/identifiers.ts';
import type { Queryable } from '../statements/statement.ts';
import { bytesSoFar, isFull, runningSize, storedSize, withinBytes } from '../statements/within-bytes.ts';

/**
 * All rows of a version's table in key order, page by page; optionally only some columns, which must include the key. Within one snapshot
 * the pages show one state of the table. A page ends earlier if its rows are large.
 */
export async function* scanTable(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  {
    columnNames = Object.keys(projection.columns),
    pageSize = 5000,
    after,
    exactJson = false,
  }: {
    columnNames?: readonly string[];
    pageSize?: number;
    /** Only rows with a higher key. */
    after?: RowKey;
    /** Whether numbers in JSON keep all digits, to be shown. */
    exactJson?: boolean;
  } = {},
): AsyncGenerator<readonly Row[]> {
  const { codec, keyColumns, tableName } = projection;
  const sqlNames: Readonly<Record<string, string>> = projection.sqlNames;
  const columns = columnNames.map((name) => `${quoted(String(sqlNames[name]))} as ${quoted(name)}`);
  const key = keyColumns.map((name) => quoted(String(sqlNames[name]))).join(', ');
  const places = keyColumns.map((name, index) => `$${index + 2}::text::${keyType(projection, name)}`).join(', ');
  const large = largeColumns(projection.columns).filter((name) => columnNames.includes(name));
  const size = ['0', ...large.map((name) => `coalesce(${storedSize(quoted(name))}, 0)`)].join(' + ');
  let last: Row | undefined = after && Object.fromEntries(keyColumns.map((name, index) => [name, after[index]]));
  for (;;) {
    const raw = await db.query<Record<string, unknown>>({
      exactJson,
      text: `
        select ${columnNames.map(quoted).join(', ')}, ${bytesSoFar}
        from ${withinBytes(
          `(
            select ${columns.join(', ')}
            from ${qualified(readSchema, tableName)}
            ${last ? `where (${key}) > (${places})` : ''}
            order by ${key}
            limit $1
          )`,
          size,
        )}`,
      values: [pageSize, ...(last ? keyColumns.map((name) => String(codec.encodeValue(name, last?.[name]))) : [])],
    });
    const rows = raw.map(({ [runningSize]: _, ...row }) => codec.decode(row));
    if (rows.length > 0) yield rows;
    if (rows.length < pageSize && !isFull(raw.at(-1)?.[runningSize])) return;
    last = rows.at(-1);
  }
}

function keyType(projection: Projection, name: string): string {
  const column = projection.columns[name];
  return column ? kindInSql(column.type).cast : 'text';
}
