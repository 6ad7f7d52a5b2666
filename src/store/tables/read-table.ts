import { createHash } from 'node:crypto';
import { type Column, isContainer } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { isLongText, longestPlace } from '../../projections/columns/text-limits.ts';
import type { PassingValues } from '../../projections/fold/unique-claims.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { isTracing, recordedTraceparent } from '../../tracing.ts';
import { kindInSql } from '../columns/column-sql.ts';
import { copiedRows } from '../columns/copied-rows.ts';
import { distributedRows, distributingTexts } from '../distributed/distributed-rows.ts';
import type { Transaction } from '../postgres/transaction.ts';
import { changesAlong } from '../processors/changes.ts';
import type { AlongWithAdvance } from '../processors/checkpoints.ts';
import { type RecordedChanges, recordChangesText, recordChangesValues } from '../processors/record-changes.ts';
import { qualified, quoted } from '../statements/identifiers.ts';
import { isDistributed, partitionColumn, placingTexts } from '../statements/placed.ts';
import type { Queryable } from '../statements/statement.ts';
import { caseInsensitiveSql } from './row-values.ts';
import { requireTextSearch, trigramOperators } from './text-search.ts';

/** The statements for one version's read table, with which a processor loads and writes rows. */
export interface ReadTable {
  create(db: Queryable): Promise<void>;
  /** The statements of {@link create}, for several tables at once. Prepares the database for them. */
  creation(db: Queryable): Promise<string[]>;
  drop(db: Queryable): Promise<void>;
  /** Creates the indexes besides those of the key and the unique columns. Called after the first build, which is faster without them. */
  createIndexes(db: Queryable): Promise<void>;
  /** The statements of {@link createIndexes}, for several tables at once. */
  indexing(db: Queryable): Promise<string[]>;
  /** Reads the existing rows with these keys. */
  load(db: Queryable, keys: readonly RowKey[]): Promise<Row[]>;
  /** Inserts rows whose keys are not in the table. Uses COPY, which is cheaper than {@link upsert}. */
  insert(tx: Pick<Transaction, 'copyInto' | 'elsewhere'>, rows: readonly Row[]): Promise<void>;
  /**
   * Deletes those of the rows whose unique values change, which frees the values for other rows. PostgreSQL checks unique values row by row
   * and would find a duplicate before a later row releases the value. Run it before `insert` and `upsert`, in the same transaction. Sends
   * no statement if no column is unique.
   */
  vacate(db: Queryable, rows: readonly Row[]): Promise<void>;
  /** A row of the table that has any of these unique values. */
  holderOf(db: Queryable, values: PassingValues): Promise<Row | undefined>;
  /** Writes all rows with one statement, which also publishes the changes in `changes` if given. */
  upsert(db: Queryable, rows: readonly Row[], changes?: RecordedChanges): Promise<void>;
  /**
   * A CTE that does the same as {@link upsert} in the statement that moves the checkpoint. It records `upserted` as changed. Undefined if a
   * column is unique, because values must be released before.
   */
  along(rows: readonly Row[], upserted: string): AlongWithAdvance | undefined;
  /** Deletes all rows with one statement. */
  remove(db: Queryable, keys: readonly RowKey[]): Promise<void>;
  keyOf(row: Row): RowKey;
}

export function createReadTable(projection: Projection, readSchema: string): ReadTable {
  const table = createTable(projection, readSchema);
  return projection.partitions === 1 ? table : distributable(table, projection, readSchema);
}

/** The table, whose rows a Citus cluster may distribute by partition. Which database has it is known with each statement. */
function distributable(table: ReadTable, projection: Projection, readSchema: string): ReadTable {
  const rows = distributedRows(projection, readSchema);
  const isApart = (db: Pick<Queryable, 'elsewhere'>) => isDistributed(db, projection);
  return {
    ...table,
    async drop(db) {
      await table.drop(db);
      if (isApart(db)) await rows.drop(db);
    },
    load: (db, keys) => (isApart(db) ? rows : table).load(db, keys),
    insert: (tx, all) => (isApart(tx) ? rows : table).insert(tx, all),
    upsert: (db, all, changes) => (isApart(db) ? rows.upsert(db, all) : table.upsert(db, all, changes)),
    remove: (db, keys) => (isApart(db) ? rows : table).remove(db, keys),
  };
}

function createTable(projection: Projection, readSchema: string): ReadTable {
  const { codec, keyColumns, columns, tableName } = projection;
  const table = qualified(readSchema, tableName);
  const names = Object.keys(columns);
  const sql = (name: string) => quoted(projection.sqlNames[name] as string); // one name for each column
  const typed = (list: readonly string[]) =>
    list.map((name) => `${quoted(name)} ${sqlType(columns[name] as Column)}`).join(', '); // names of columns
  const keyList = keyColumns.map(sql).join(', ');
  const others = names.filter((name) => !keyColumns.includes(name));
  const assignments = others.map((name) => `${sql(name)} = excluded.${sql(name)}`);
  const matched = keyColumns.map((name) => `${table}.${sql(name)} = key.${quoted(name)}`).join(' and ');

  const selected = names.map((name) => `${table}.${sql(name)} as ${quoted(name)}`).join(', ');
  const keyArrays = keyColumns.map((name, index) => `$${index + 1}::${arrayType(columns[name] as Column)}`).join(', '); // names of columns
  const loadText = `select ${selected}
    from unnest(${keyArrays}) as key (${keyColumns.map(quoted).join(', ')})
    join ${table} on ${matched}`;
  const insertText = `copy ${table} (${names.map(sql).join(', ')}) from stdin`;
  const upsertTextOf = (rows: string, where = '') => `insert into ${table} (${names.map(sql).join(', ')})
    select ${names.map(quoted).join(', ')}
    from json_to_recordset(${rows}) as row (${typed(names)})${where}
    on conflict (${keyList}) do ${assignments.length > 0 ? `update set ${assignments.join(', ')}` : 'nothing'}`;
  const upsertText = upsertTextOf('$1');
  const alongText = `, written as (${upsertTextOf('$11', ' where exists (select from moved)')})${changesAlong('$12', '$13')}`;
  const unique = [...new Set(projection.uniqueIndexes.flat())].filter((name) => !keyColumns.includes(name));
  const vacateText = `delete from ${table}
    using json_to_recordset($1) as key (${typed([...keyColumns, ...unique])})
    where ${matched} and (${unique.map((name) => `${table}.${sql(name)} is distinct from key.${quoted(name)}`).join(' or ')})`;
  const recordingText = `with written as (${upsertText}) ${recordChangesText(2)}`;
  const removeText = `delete from ${table} using json_to_recordset($1) as key (${typed(keyColumns)}) where ${matched}`;
  const keysJson = (keys: readonly RowKey[]) =>
    JSON.stringify(
      keys.map((key) =>
        Object.fromEntries(keyColumns.map((name, index) => [name, codec.encodeValue(name, key[index])])),
      ),
    );

  return {
    async create(db) {
      for (const text of await this.creation(db)) await db.query({ text });
    },
    async creation(db) {
      await requireTextSearch(db, projection);
      const isApart = isDistributed(db, projection);
      return [
        // 90: leaves room to update rows on the same page, which then changes no index.
        `create table ${table} (${names.map((name) => columnDefinition(name)).join(', ')}, ${keyDefinition(keyList, isApart)}) with (fillfactor = 90)`,
        ...(isApart ? distributingTexts(projection, table) : placingTexts(db, table)),
        // Created now, because a build must refuse the same rows as processing at the head.
        ...projection.uniqueIndexes.map(uniqueIndex),
      ];
    },
    async drop(db) {
      await db.query({ text: `drop table if exists ${table}` });
    },
    async createIndexes(db) {
      for (const text of await this.indexing(db)) await db.query({ text });
    },
    async indexing(db) {
      const texts: string[] = [];
      for (const name of names) {
        const column = columns[name] as Column; // names of columns
        const { index: isIndexed, unique: isUnique, primaryKey, search } = column.flags;
        if (search) texts.push(await searchIndex(db, name));
        if (isContainer(column)) {
          // jsonb_path_ops: half the size of the default operator class, and sufficient for `@>`.
          if (isIndexed) texts.push(index(`${projection.sqlNames[name]}`, `using gin (${sql(name)} jsonb_path_ops)`));
          continue;
        }
        if (!isIndexed || isUnique || (primaryKey && keyColumns[0] === name)) continue;
        const [suffix, on] = sortedBy(projection, name);
        texts.push(index(`${projection.sqlNames[name]}${suffix}`, on));
      }
      return [...texts, ...projection.uniqueIndexes.map(uniqueIndex), `analyze ${table}`];
    },
    async load(db, keys) {
      const rows = await db.query<Record<string, unknown>>({
        text: loadText,
        values: keyColumns.map((name, index) => keys.map((key) => codec.encodeValue(name, key[index]))),
        name: `load ${tableName}`,
      });
      return rows.map((row) => codec.decode(row));
    },
    insert: (tx, rows) => tx.copyInto(insertText, copiedRows(projection, rows)),
    async vacate(db, rows) {
      if (unique.length === 0) return;
      const encoded = JSON.stringify(rows.map((row) => codec.encode(row)));
      await db.query({ text: vacateText, values: [encoded], name: `vacate ${tableName}` });
    },
    async holderOf(db, { columns: on, rows }) {
      const values = rows.map((row) =>
        Object.fromEntries(on.map((name) => [name, codec.encodeValue(name, row[name])])),
      );
      const [found] = await db.query<Record<string, unknown>>({
        text: `select ${selected}
          from json_to_recordset($1) as taken (${typed(on)})
          join ${table} on ${on.map((name) => `${table}.${sql(name)} = taken.${quoted(name)}`).join(' and ')}
          limit 1`,
        values: [JSON.stringify(values)],
      });
      return found && codec.decode(found);
    },
    async upsert(db, rows, changes) {
      const encoded = JSON.stringify(rows.map((row) => codec.encode(row)));
      await db.query(
        changes
          ? {
              text: recordingText,
              values: [encoded, ...recordChangesValues(changes)],
              name: `upsert and tell ${tableName}`,
            }
          : { text: upsertText, values: [encoded], name: `upsert ${tableName}` },
      );
    },
    along(rows, upserted) {
      if (unique.length > 0) return undefined;
      const encoded = JSON.stringify(rows.map((row) => codec.encode(row)));
      const cause = isTracing ? recordedTraceparent() : null;
      return { name: tableName, parts: alongText, values: [encoded, upserted, cause] };
    },
    async remove(db, keys) {
      await db.query({ text: removeText, values: [keysJson(keys)], name: `remove ${tableName}` });
    },
    keyOf: (row) => keyColumns.map((name) => row[name]),
  };

  function uniqueIndex(on: readonly string[]): string {
    return index(String(projection.sqlNames[String(on[0])]), `(${on.map(sql).join(', ')})`, 'unique index');
  }

  function index(name: string, on: string, kind: 'index' | 'unique index' = 'index'): string {
    return `create ${kind} if not exists ${quoted(indexName(tableName, name))} on ${table} ${on}`;
  }

  /** No column name contains two underscores, so the index name is unique. */
  async function searchIndex(db: Queryable, name: string): Promise<string> {
    const on = `using gin ((${caseInsensitiveSql(sql(name))}) ${await trigramOperators(db)})`;
    return index(`${projection.sqlNames[name]}${searchSuffix}`, on);
  }

  function columnDefinition(name: string): string {
    const column = columns[name] as Column; // names of columns
    const check =
      column.type.kind === 'enum'
        ? ` check (${sql(name)} in (${column.type.values.map((value) => `'${value}'`).join(', ')}))`
        : '';
    return `${sql(name)} ${sqlType(column)}${column.flags.nullable ? '' : ' not null'}${check}`;
  }
}

/** The suffix of the name of a column's index for orders, and what it is on. */
function sortedBy({ columns, keyColumns, sqlNames }: Projection, name: string): readonly [string, string] {
  const sql = (one: string) => quoted(String(sqlNames[one]));
  const isLong = isLongText(columns[name] as Column); // a name of a column
  const first = isLong ? `left(${sql(name)}, ${longestPlace})` : sql(name);
  // The key columns make the order of a sorted list total. A keyset page is then one index scan.
  const others = keyColumns.filter((key) => key !== name).map(sql);
  return [isLong ? longSuffix : '', `(${[first, ...others].join(', ')})`];
}

export async function tableExists(db: Queryable, readSchema: string, tableName: string): Promise<boolean> {
  const rows = await db.query({
    text: 'select from pg_tables where schemaname = $1 and tablename = $2',
    values: [readSchema, tableName],
  });
  return rows.length > 0;
}

/**
 * Creates an empty temporary table with the columns and the key of a version's table. It exists only in this transaction.
 *
 * @returns its quoted name with its schema
 */
export async function createTemporaryTable(db: Queryable, projection: Projection, readSchema: string): Promise<string> {
  const { keyColumns, tableName } = projection;
  const list = (names: readonly string[]) => names.map((name) => quoted(String(projection.sqlNames[name]))).join(', ');
  const unique = projection.uniqueIndexes.map((names) => `, unique (${list(names)})`).join('');
  await db.query({
    text: `
      create temporary table refold_again (
        like ${qualified(readSchema, tableName)} including constraints,
        primary key (${list(keyColumns)})${unique}
      ) on commit drop`,
  });
  return '"pg_temp"."refold_again"';
}

export async function createReadSchema(db: Queryable, readSchema: string): Promise<void> {
  // PostgreSQL checks the privilege to create schemas before it checks whether the schema exists.
  const found = await db.query({ text: 'select from pg_namespace where nspname = $1', values: [readSchema] });
  if (found.length > 0) return;
  await db.query({ text: `create schema if not exists ${quoted(readSchema)}` });
}

function keyDefinition(keyList: string, isApart: boolean): string {
  const partition = quoted(partitionColumn);
  return isApart ? `${partition} integer not null, primary key (${keyList}, ${partition})` : `primary key (${keyList})`;
}

function arrayType(column: Column): string {
  return `${sqlType(column).replace(' collate "C"', '')}[]`;
}

/** The PostgreSQL type of a column. */
export function sqlType({ type }: Pick<Column, 'type'>): string {
  return kindInSql(type).type;
}

/** The index for text search, and the one of the first characters of a long text. Both are known by their names. */
export const [searchSuffix, longSuffix] = ['__search', '__left'];

/**
 * The name of an index. PostgreSQL truncates names to 63 bytes, and truncated names could collide; so could a column like `g2`, whose index would
 * be named as the table of the next rebuild. Those names end in a hash, all others are plain.
 */
export function indexName(tableName: string, column: string): string {
  const name = `${tableName}_${column}`;
  return name.length <= 63 && !looksLikeTable.test(column)
    ? name
    : `${name.slice(0, 54)}_${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

// Parts of the names of tables (version, generation, snapshot), and of the index of a key.
const looksLikeTable = /(^[gs]|(^|_)v)\d+(_|$)|^pkey$/;
