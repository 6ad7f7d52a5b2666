import type { Column } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { partitionOf } from '../../projections/projection/partition.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import { kindInSql } from '../columns/column-sql.ts';
import { copiedRows } from '../columns/copied-rows.ts';
import type { Transaction } from '../postgres/transaction.ts';
import { qualified, quoted } from '../statements/identifiers.ts';
import { distributedWith, distributingText, partitionColumn } from '../statements/placed.ts';
import type { Queryable } from '../statements/statement.ts';

/** The statements for the rows of a table that a Citus cluster distributes by partition. Each names the partitions, so only their workers run it. */
export interface DistributedRows {
  /** Forgets the checkpoints of a table that is dropped. */
  drop(db: Queryable): Promise<void>;
  load(db: Queryable, keys: readonly RowKey[]): Promise<Row[]>;
  insert(tx: Pick<Transaction, 'copyInto'>, rows: readonly Row[]): Promise<void>;
  upsert(db: Queryable, rows: readonly Row[]): Promise<void>;
  remove(db: Queryable, keys: readonly RowKey[]): Promise<void>;
}

export function distributedRows(projection: Projection, readSchema: string): DistributedRows {
  const { codec, keyColumns, columns, tableName, partitions } = projection;
  const table = qualified(readSchema, tableName);
  const names = Object.keys(columns);
  const partition = quoted(partitionColumn);
  const sql = (name: string) => quoted(String(projection.sqlNames[name]));
  const typeOf = (name: string) => kindInSql((columns[name] as Column).type).type; // names of columns
  const typed = (list: readonly string[]) =>
    [...list.map((name) => `${quoted(name)} ${typeOf(name)}`), `${partition} integer`].join(', ');
  const listed = [...names.map(sql), partition].join(', ');
  const keyList = keyColumns.map(sql).join(', ');
  const assignments = names
    .filter((name) => !keyColumns.includes(name))
    .map((name) => `${sql(name)} = excluded.${sql(name)}`);
  const matched = keyColumns.map((name) => `${table}.${sql(name)} = key.${quoted(name)}`).join(' and ');
  const ofKey = `${table}.${partition} = key.${partition} and ${matched}`;
  const keyArrays = keyColumns.map((name, index) => `$${index + 2}::${typeOf(name).replace(' collate "C"', '')}[]`);

  const loadText = `select ${names.map((name) => `${table}.${sql(name)} as ${quoted(name)}`).join(', ')}
    from unnest($1::integer[], ${keyArrays.join(', ')}) as key (${partition}, ${keyColumns.map(quoted).join(', ')})
    join ${table} on ${ofKey}
    where ${table}.${partition} = any ($1)`;
  const insertText = `copy ${table} (${listed}) from stdin`;
  const upsertText = `insert into ${table} (${listed})
    select ${[...names.map(quoted), partition].join(', ')}
    from json_to_recordset($1) as row (${typed(names)})
    on conflict (${partition}, ${keyList}) do ${assignments.length > 0 ? `update set ${assignments.join(', ')}` : 'nothing'}`;
  const removeText = `delete from ${table}
    using json_to_recordset($1) as key (${typed(keyColumns)})
    where ${ofKey} and ${table}.${partition} = any ($2)`;

  const partitionOfKey = (key: RowKey) => partitionOf(keyText(key), partitions);
  const partitionOfRow = (row: Row) => partitionOfKey(keyColumns.map((name) => row[name]));

  return {
    async drop(db) {
      await db.query({ text: `delete from ${distributedWith} where table_name = $1`, values: [tableName] });
    },
    async load(db, keys) {
      const rows = await db.query<Record<string, unknown>>({
        text: loadText,
        values: [
          keys.map(partitionOfKey),
          ...keyColumns.map((name, index) => keys.map((key) => codec.encodeValue(name, key[index]))),
        ],
        name: `load ${tableName}`,
      });
      return rows.map((row) => codec.decode(row));
    },
    insert: (tx, rows) => tx.copyInto(insertText, copiedRows(projection, rows, partitionOfRow)),
    async upsert(db, rows) {
      const encoded = rows.map((row) => ({ ...codec.encode(row), [partitionColumn]: partitionOfRow(row) }));
      await db.query({ text: upsertText, values: [JSON.stringify(encoded)], name: `upsert ${tableName}` });
    },
    async remove(db, keys) {
      const encoded = keys.map((key) => ({
        ...Object.fromEntries(keyColumns.map((name, index) => [name, codec.encodeValue(name, key[index])])),
        [partitionColumn]: partitionOfKey(key),
      }));
      const values = [JSON.stringify(encoded), [...new Set(keys.map(partitionOfKey))]];
      await db.query({ text: removeText, values, name: `remove ${tableName}` });
    },
  };
}

/** The statements after the creation of a table that distribute it. @param table its quoted name with its schema */
export function distributingTexts({ tableName, partitions, startAfter }: Projection, table: string): readonly string[] {
  const name = literal(tableName);
  const rows = Array.from({ length: partitions }, (_, partition) => `(${partition}, ${name}, ${startAfter})`);
  return [
    distributingText(table),
    // Of a former table with this name, too.
    `delete from ${distributedWith} where table_name = ${name}`,
    `insert into ${distributedWith} (partition, table_name, checkpoint) values ${rows.join(', ')}`,
  ];
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
