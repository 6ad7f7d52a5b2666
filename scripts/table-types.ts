import type { Queryable } from '../src/store/statements/statement.ts';

/**
 * The TypeScript types of the tables and views of the schema `refold`, for Kysely's builder.
 *
 * Our own generator instead of kysely-codegen: it reads the unions of texts from the check constraints, knows that positions are branded,
 * and types inserts as our statements bind them (JSON as text, arrays as arrays). With kysely-codegen all of these are a configuration
 * file as long as this one.
 */
export async function generateTableTypes(target: Queryable): Promise<string> {
  const columns = await target.query<CatalogColumn>({ text: catalogStatement });
  const tables = [...Map.groupBy(columns, ({ table }) => table)];
  return [
    header,
    ...tables.map(([table, its]) => `interface ${typeName(table)} {\n${its.map(member).join('\n')}\n}\n`),
    `/** The tables and views of the schema \`refold\`. */\nexport interface RefoldTables {\n${tables
      .map(([table]) => `  'refold.${table}': ${typeName(table)};`)
      .join('\n')}\n}\n`,
  ].join('\n');
}

/** The TypeScript type to which `columnParsers` parses each PostgreSQL type. Arrays have a type of their own. */
export const parsedTypes: Readonly<Record<string, string>> = {
  bool: 'boolean',
  bytea: 'Buffer',
  date: 'string',
  float8: 'number',
  int2: 'number',
  int4: 'number',
  int8: 'bigint',
  json: 'unknown',
  jsonb: 'unknown',
  text: 'string',
  timestamptz: 'string',
  uuid: 'string',
  varchar: 'string',
  _text: 'string[]',
};

interface CatalogColumn {
  readonly table: string;
  readonly column: string;
  /** The name of the type in `pg_type`. */
  readonly type: string;
  readonly nullable: boolean;
  readonly view: boolean;
  readonly hasDefault: boolean;
  /** Whether only the server writes it. */
  readonly computed: boolean;
  /** The definition of the check constraint on this column alone. */
  readonly check: string | null;
}

const header = `// What the schema \`refold\` holds, as Kysely's builder types it. Written by scripts/dump-schema.ts.
import type { ColumnType, GeneratedAlways } from 'kysely';
import type { EventMetadata } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { LetterError, ProcessorError, ProcessorRetry, StoredBatch, StoredDefinition, StoredFloors } from './stored-json.ts';

/** A column with a default: an insert may omit it. */
type Generated<T> = T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S, I | undefined, U> : ColumnType<T, T | undefined, T>;

/** JSON is written as its text: the driver would write an array as an array of PostgreSQL. */
type Json<T> = ColumnType<T, string, string>;

type Int8 = ColumnType<bigint, bigint | number, bigint | number>;

type Texts = ColumnType<string[], readonly string[], readonly string[]>;
`;

/** What the catalog does not say: the shape of JSON, and the values of texts without a check. */
const refined: Readonly<Record<string, string>> = {
  'changes.deleted': 'Json<readonly RowKey[]>',
  'changes.upserted': 'Json<readonly RowKey[]>',
  'dead_letters.error': 'Json<LetterError>',
  'dead_letters.key': 'Json<RowKey>',
  'discards.key': 'Json<RowKey | null>',
  'events.metadata': 'Json<EventMetadata>',
  'lag.state': 'VersionState',
  'partition_checkpoints.batch': 'Json<StoredBatch>',
  'processors.error': 'Json<ProcessorError>',
  'processors.retrying': 'Json<ProcessorRetry>',
  'processors.floors': 'Json<StoredFloors>',
  'processes.role': "'gateway' | 'worker' | 'all'",
  'projections.definition': 'Json<StoredDefinition>',
  'reactor_instances.received': 'readonly GlobalPosition[]',
  'reactor_letters.error': 'Json<LetterError>',
  'reactor_operations.operation':
    "'declared' | 'paused' | 'resumed' | 'rewound' | 'skipped ahead' | 'letters retried' | 'letters discarded' | 'cancelled' | 'version begun' | 'version withdrawn' | 'forgotten'",
  'reactors.error': 'Json<ProcessorError>',
  'rebuilds.error': 'Json<ProcessorError>',
  'rebuilds.state_before': 'VersionState',
  'runs.kind': "'processor' | 'rebuild' | 'reactor'",
  'skips.key': 'Json<RowKey>',
  'throughput.kind': "'processor' | 'rebuild' | 'reactor'",
  'transitions.from_state': 'VersionState',
  'transitions.to_state': 'VersionState',
  'verifications.samples': 'Json<readonly unknown[]>',
};

/** Views whose columns are never null. The catalog does not know this of any view. */
const completeViews: ReadonlySet<string> = new Set(['lag', 'throughput']);

function typeName(table: string): string {
  const words = table.split('_').map((word) => word.slice(0, 1).toUpperCase() + word.slice(1));
  return `${words.join('')}Table`;
}

function member(column: CatalogColumn): string {
  const type = columnType(column);
  const isNull = column.nullable && !(column.view && completeViews.has(column.table));
  const withNull = isNull ? `${type} | null` : type;
  return `  ${column.column}: ${generated(column, withNull)};`;
}

function columnType({ table, column, type, check }: CatalogColumn): string {
  const known = refined[`${table}.${column}`];
  if (known !== undefined) return known;
  if (type === 'int8') return /^position$|^checkpoint$|(?<!^stream)_position$/.test(column) ? 'GlobalPosition' : 'Int8';
  if (type === 'json' || type === 'jsonb') return 'Json<unknown>';
  if (type === '_text') return 'Texts';
  const values = check?.match(/^CHECK \(\(\w+ = ANY \(ARRAY\[(.*)\]\)\)\)$/)?.[1];
  if (values !== undefined) return values.replaceAll('::text', '').replaceAll(', ', ' | ');
  const parsed = parsedTypes[type];
  if (parsed === undefined) throw new Error(`refold.${table}.${column}: add the type '${type}' to parsedTypes.`);
  return parsed;
}

function generated({ computed, hasDefault }: CatalogColumn, type: string): string {
  if (computed) return type === 'Int8' ? 'GeneratedAlways<bigint>' : `GeneratedAlways<${type}>`;
  return hasDefault ? `Generated<${type}>` : type;
}

const catalogStatement = `
  select
    relname as "table",
    attname as "column",
    typname as type,
    not attnotnull as nullable,
    relkind = 'v' as view,
    atthasdef as "hasDefault",
    attidentity <> '' or attgenerated <> '' as computed,
    (
      select min(pg_get_constraintdef(pg_constraint.oid))
      from pg_constraint
      where conrelid = attrelid and contype = 'c' and conkey = array[attnum]
    ) as check
  from pg_class
  join pg_attribute on attrelid = pg_class.oid
  join pg_type on pg_type.oid = atttypid
  where relnamespace = 'refold'::regnamespace
    and relkind in ('r', 'p', 'v')
    and attnum > 0
    and not attisdropped
  order by relname collate "C", attnum`;
