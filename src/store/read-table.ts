import { createHash } from 'node:crypto';
import type { Column } from '../projections/column.ts';
import type { Projection, RowKey } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import type { Queryable } from './statement.ts';

/** The statements of one version's read table: the rows that a processor loads and writes. */
export interface ReadTable {
  create(db: Queryable): Promise<void>;
  drop(db: Queryable): Promise<void>;
  /** The indexes beside the key. Made after the first build, which is faster without them. */
  createIndexes(db: Queryable): Promise<void>;
  /** The rows of these keys that exist. */
  load(db: Queryable, keys: readonly RowKey[]): Promise<Row[]>;
  /** One statement, whatever the number of rows. */
  upsert(db: Queryable, rows: readonly Row[]): Promise<void>;
  /** One statement, whatever the number of keys. */
  remove(db: Queryable, keys: readonly RowKey[]): Promise<void>;
  keyOf(row: Row): RowKey;
}

export function createReadTable(projection: Projection, readSchema: string): ReadTable {
  const { codec, keyColumns, columns, tableName } = projection;
  const table = `${quoted(readSchema)}.${quoted(tableName)}`;
  const names = Object.keys(columns);
  const sql = (name: string) => quoted(projection.sqlNames[name] as string); // one for each column
  const typed = (list: readonly string[]) =>
    list.map((name) => `${quoted(name)} ${sqlType(columns[name] as Column)}`).join(', '); // names of columns
  const keyList = keyColumns.map(sql).join(', ');
  const assignments = names
    .filter((name) => !keyColumns.includes(name))
    .map((name) => `${sql(name)} = excluded.${sql(name)}`);
  const matched = keyColumns.map((name) => `${table}.${sql(name)} = key.${quoted(name)}`).join(' and ');

  const loadText = `select ${names.map((name) => `${table}.${sql(name)} as ${quoted(name)}`).join(', ')}
    from json_to_recordset($1) as key (${typed(keyColumns)})
    join ${table} on ${matched}`;
  const upsertText = `insert into ${table} (${names.map(sql).join(', ')})
    select ${names.map(quoted).join(', ')}
    from json_to_recordset($1) as row (${typed(names)})
    on conflict (${keyList}) do ${assignments.length > 0 ? `update set ${assignments.join(', ')}` : 'nothing'}`;
  const removeText = `delete from ${table} using json_to_recordset($1) as key (${typed(keyColumns)}) where ${matched}`;
  const keysJson = (keys: readonly RowKey[]) =>
    JSON.stringify(
      keys.map((key) =>
        Object.fromEntries(keyColumns.map((name, index) => [name, codec.encodeValue(name, key[index])])),
      ),
    );

  return {
    async create(db) {
      // 90: room for updates of rows on their own page, which then touch no index.
      await db.query({
        text: `create table ${table} (${names.map((name) => columnDefinition(name)).join(', ')}, primary key (${keyList})) with (fillfactor = 90)`,
      });
    },
    async drop(db) {
      await db.query({ text: `drop table if exists ${table}` });
    },
    async createIndexes(db) {
      for (const name of names) {
        const { index, unique, primaryKey } = (columns[name] as Column).flags; // names of columns
        if (!index || (primaryKey && keyColumns[0] === name)) continue;
        // The key columns make the order of a sorted list total, so that a keyset page is one walk of the index.
        const others = keyColumns.filter((key) => key !== name).map(sql);
        const on = unique ? [sql(name)] : [sql(name), ...others];
        await db.query({
          text: `create ${unique ? 'unique ' : ''}index if not exists ${quoted(indexName(tableName, projection.sqlNames[name] as string))} on ${table} (${on.join(', ')})`,
        }); // one for each column
      }
      await db.query({ text: `analyze ${table}` });
    },
    async load(db, keys) {
      const rows = await db.query<Record<string, unknown>>({
        text: loadText,
        values: [keysJson(keys)],
        name: `load ${tableName}`,
      });
      return rows.map((row) => codec.decode(row));
    },
    async upsert(db, rows) {
      await db.query({
        text: upsertText,
        values: [JSON.stringify(rows.map((row) => codec.encode(row)))],
        name: `upsert ${tableName}`,
      });
    },
    async remove(db, keys) {
      await db.query({ text: removeText, values: [keysJson(keys)], name: `remove ${tableName}` });
    },
    keyOf: (row) => keyColumns.map((name) => row[name]),
  };

  function columnDefinition(name: string): string {
    const column = columns[name] as Column; // names of columns
    const check =
      column.type.kind === 'enum'
        ? ` check (${sql(name)} in (${column.type.values.map((value) => `'${value}'`).join(', ')}))`
        : '';
    return `${sql(name)} ${sqlType(column)}${column.flags.nullable ? '' : ' not null'}${check}`;
  }
}

/** Moves the projection's stable view to the table of this version; null takes the view away. */
export async function moveView(
  db: Queryable,
  readSchema: string,
  name: string,
  tableName: string | null,
): Promise<void> {
  const view = `${quoted(readSchema)}.${quoted(name)}`;
  // A replaced view must keep its columns, and the next version's differ.
  await db.query({ text: `drop view if exists ${view}` });
  if (tableName !== null)
    await db.query({ text: `create view ${view} as select * from ${quoted(readSchema)}.${quoted(tableName)}` });
}

export async function createReadSchema(db: Queryable, readSchema: string): Promise<void> {
  await db.query({ text: `create schema if not exists ${quoted(readSchema)}` });
}

/** The PostgreSQL type of a column. Text sorts by code point, the same in every database and the fastest for indexes. */
function sqlType({ type }: Column): string {
  switch (type.kind) {
    case 'text':
    case 'enum':
      return 'text collate "C"';
    case 'decimal':
      return `numeric(${type.precision}, ${type.scale})`;
    case 'json':
    case 'object':
    case 'list':
      return 'jsonb';
    case 'integer':
    case 'bigint':
    case 'boolean':
    case 'uuid':
    case 'date':
    case 'timestamptz':
      return type.kind;
  }
}

// PostgreSQL cuts names after 63 bytes, and two cut names could meet.
function indexName(tableName: string, column: string): string {
  const name = `${tableName}_${column}`;
  return name.length <= 63
    ? name
    : `${name.slice(0, 54)}_${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
