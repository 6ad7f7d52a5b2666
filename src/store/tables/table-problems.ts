import type { Column } from '../../projections/columns/column.ts';
import { isLongText } from '../../projections/columns/text-limits.ts';
import { partitionColumn } from '../statements/placed.ts';
import type { Queryable } from '../statements/statement.ts';
import type { StoredDefinition } from '../statements/stored-json.ts';
import { indexName, longSuffix, searchSuffix, sqlType } from './read-table.ts';

/** A version whose read table differs from its declaration, because somebody altered it. */
export interface TableProblem {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  /** Why nothing can be folded into it or read from it; null if both work. */
  readonly damage: string | null;
  /** The columns whose index is missing. Empty while the version is being built. */
  readonly missingIndexes: readonly string[];
  /** Indexes of whole texts that an earlier release created for columns that take long texts now. They refuse such a text. */
  readonly limitingIndexes: readonly string[];
}

interface Catalogued {
  readonly name: string;
  readonly version: number;
  readonly isBuilt: boolean;
  readonly tableSchema: string;
  readonly tableName: string;
  readonly definition: StoredDefinition;
  readonly exists: boolean;
  readonly isLogged: boolean;
  /** By SQL name. */
  readonly columns: Readonly<Record<string, StoredColumn>>;
  readonly indexes: readonly StoredIndex[];
}

interface StoredColumn {
  readonly type: string;
  readonly nullable: boolean;
  /** Whether an insert may omit it: it may be null, has a default, or a trigger may fill it. */
  readonly optional: boolean;
}

interface StoredIndex {
  readonly name: string;
  readonly unique: boolean;
  readonly primary: boolean;
  readonly columns: readonly (string | null)[];
}

/** Compares the tables of all versions that are not retired with their stored declarations. Reads the catalog once. */
export async function readTableProblems(db: Queryable): Promise<TableProblem[]> {
  const tables = await db.query<Catalogued>({
    name: 'read table problems',
    // The versions are read first: a Citus cluster does not join its catalog with a table that is on a worker.
    text: `
      with versions as materialized (
        select name, version, state, table_schema, table_name, definition
        from refold.projections
        where state <> 'retired'
      )
      select
        name,
        version,
        state in ('ready', 'active') as "isBuilt",
        table_schema as "tableSchema",
        table_name as "tableName",
        definition,
        class.oid is not null as exists, class.relpersistence = 'p' as "isLogged",
        (
          select coalesce(
            json_object_agg(
              attname,
              json_build_object(
                'type',
                format_type(atttypid, atttypmod)
                  || case when collname <> 'default' then ' collate "' || collname || '"' else '' end,
                'nullable',
                not attnotnull,
                'optional',
                not attnotnull or atthasdef or attidentity <> '' or exists (
                  select from pg_trigger where tgrelid = class.oid and not tgisinternal and tgenabled <> 'D'
                )
              )
            ),
            '{}'
          )
          from pg_attribute
          left join pg_collation on pg_collation.oid = attcollation
          where attrelid = class.oid and attnum > 0 and not attisdropped
        ) as columns,
        (
          select coalesce(
            json_agg(
              json_build_object(
                'name',
                index_class.relname,
                'unique',
                indisunique,
                'primary',
                indisprimary,
                'columns',
                (
                  select json_agg(attname order by place)
                  from unnest(indkey) with ordinality as part (number, place)
                  left join pg_attribute on attrelid = indrelid and attnum = number
                )
              )
            ),
            '[]'
          )
          from pg_index
          join pg_class as index_class on index_class.oid = indexrelid
          where indrelid = class.oid and indisvalid and indpred is null
        ) as indexes
      from versions
      left join pg_namespace on nspname = table_schema
      left join pg_class as class on class.relnamespace = pg_namespace.oid and class.relname = table_name and class.relkind in ('r', 'p')
      order by name, version`,
  });
  return tables.flatMap((table) => {
    const { name, version, tableName } = table;
    const damage = damageOf(table);
    const missingIndexes = damage === null && table.isBuilt ? missingOf(table) : [];
    const limitingIndexes = damage === null ? limitingOf(table) : [];
    if (damage === null && missingIndexes.length === 0 && limitingIndexes.length === 0) return [];
    return [{ name, version, tableName, damage, missingIndexes, limitingIndexes }];
  });
}

function damageOf({
  tableSchema,
  tableName,
  exists,
  isLogged,
  definition,
  columns,
  indexes,
}: Catalogued): string | null {
  const table = `its table ${tableSchema}.${tableName}`;
  if (!exists) return `${table} is missing`;
  const differences = definition.columns.flatMap(({ sqlName, type, flags }) => {
    const found = columns[sqlName];
    if (!found) return [`column '${sqlName}' is missing`];
    const expected = catalogueType(type);
    if (found.type !== expected) return [`column '${sqlName}' is ${found.type} instead of ${expected}`];
    return found.nullable && !flags.nullable ? [`column '${sqlName}' may be null`] : [];
  });
  for (const [name, { optional }] of Object.entries(columns)) {
    if (name === partitionColumn) continue;
    const isDeclared = definition.columns.some(({ sqlName }) => sqlName === name);
    if (!isDeclared && !optional) differences.push(`column '${name}' was added, is not null and has no default`);
  }
  const key = definition.keyColumns.map((name) => sqlNameOf(definition, name));
  if (
    !indexes.some(
      (index) => index.primary && index.columns.filter((name) => name !== partitionColumn).join() === key.join(),
    )
  )
    differences.push('its primary key is missing');
  if (!isLogged) differences.push('it is UNLOGGED, so a crash of the server empties it');
  return differences.length === 0 ? null : `${table} was altered: ${differences.join(', ')}`;
}

/** Identifies indexes by their columns, not by name, except for those of expressions. */
function missingOf({ tableName, definition, indexes }: Catalogued): string[] {
  return definition.columns
    .filter((column) => {
      const { sqlName, flags } = column;
      const { index, unique, primaryKey, search } = flags;
      const has = (suffix: string) => indexes.some(({ name }) => name === indexName(tableName, `${sqlName}${suffix}`));
      if (search && !has(searchSuffix)) return true;
      if (isLongText(column)) return !has(longSuffix);
      if (unique && !primaryKey) return !indexes.some((one) => one.unique && one.columns.includes(sqlName));
      if (!index) return false;
      return !indexes.some(({ columns: [first] }) => first === sqlName);
    })
    .map(({ name }) => name);
}

function limitingOf({ tableName, definition, indexes }: Catalogued): string[] {
  return definition.columns.filter(isLongText).flatMap(({ sqlName }) => {
    const before = indexName(tableName, sqlName);
    return indexes.some(({ name }) => name === before) ? [before] : [];
  });
}

function sqlNameOf({ columns }: StoredDefinition, name: string): string {
  return columns.find((column) => column.name === name)?.sqlName ?? name;
}

/** The type as `format_type` writes it. */
function catalogueType(type: Column['type']): string {
  return sqlType({ type }).replace('timestamptz', 'timestamp with time zone').replace(', ', ',');
}
