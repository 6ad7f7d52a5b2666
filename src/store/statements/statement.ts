import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryExecutorProvider,
  type Selectable,
} from 'kysely';
import type { Placement } from '../../config/read-store-options.ts';
import type { RefoldTables } from './refold-tables.generated.ts';

/** A statement and its bound values. */
export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Prepares the statement under this name, once per connection. For frequent statements. */
  readonly name?: string;
  /** What its rows may have in bytes, together with other statements. @default the limit of the connection, if it has one */
  readonly size?: AnswerSize | undefined;
  /** Whether numbers in JSON keep all digits; see `exactJsonParsers`. @default false */
  readonly exactJson?: boolean;
}

/** How many bytes an answer may still receive from the database. All statements of the answer share it. */
export interface AnswerSize {
  readonly most: number;
  left: number;
}

/** Anything that runs statements: a database (any connection of its pool) or a transaction. */
export interface Queryable {
  query<Row extends object>(statement: Statement): Promise<Row[]>;
  /** The application's other databases. @default there are none: this one holds the log and all read models */
  readonly elsewhere?: Elsewhere | undefined;
}

/** The databases that hold what a read store does not. */
export interface Elsewhere {
  /** The database of the log; undefined if it is this one. */
  readonly log: Queryable | undefined;
  /** The other stores that may hold versions of a projection: those that declarations name, and those to which a version has moved. */
  storesOf(name: string): readonly Queryable[];
  /** All other stores. */
  others(): readonly Queryable[];
  /** Where this database keeps its tables, if it is a Citus cluster; undefined if it is plain PostgreSQL. */
  readonly placement?: Placement | undefined;
}

/** Where to read the log: in this database, with the same snapshot, or in that of the log. */
export function logOf(target: Queryable): Queryable {
  return target.elsewhere?.log ?? target;
}

/** Any table with any columns: tables of read models are known only at run time. */
export type AnyTables = Record<string, Record<string, unknown>>;

/** Builds statements over read tables. Kysely compiles them and never connects. */
export const builder = createBuilder<AnyTables>();

/** Builds statements over Refold's own tables, whose columns and types it knows. Run them with {@link run}. */
export const refoldTables = createBuilder<RefoldTables>();

/** A row of one of Refold's own tables. SQL text that reads some of its columns has the rows `Pick<TableRow<…>, …>`. */
export type TableRow<Table extends keyof RefoldTables> = Readonly<Selectable<RefoldTables[Table]>>;

/**
 * Columns of one of Refold's own tables, under the names that SQL text gives them: `table_name as "tableName"`. The row types of text extend it,
 * so a changed column is a compile error.
 */
export type ColumnsOf<Table extends keyof RefoldTables, Column extends keyof TableRow<Table> & string> = {
  readonly [Name in Column as CamelCase<Name>]: TableRow<Table>[Name];
};

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** A statement of a builder, or a `sql` template with the type of its rows. */
export interface TypedStatement<Row> {
  compile(executor: QueryExecutorProvider): CompiledQuery<Row>;
}

/** Runs a typed statement, prepared if it has a name. Here, and only here, rows get their type without a check. */
export function run<Row extends object>(
  target: Queryable,
  statement: TypedStatement<Row>,
  name?: string,
): Promise<Row[]> {
  const { sql: text, parameters: values } = statement.compile(refoldTables);
  return target.query<Row>({ text, values, ...(name === undefined ? {} : { name }) });
}

/** Sends statements without values and results in one round trip, if the database takes them so. If one fails, those after it do not run. */
export async function runTogether(target: Queryable, texts: readonly string[]): Promise<void> {
  // A Citus cluster passes the text of a definition on to its workers, and they refuse several statements in it.
  const messages = target.elsewhere?.placement === undefined ? [texts.join(';\n')] : texts;
  for (const text of messages) if (text !== '') await target.query({ text });
}

/** Runs a statement that returns exactly one row, whatever the tables hold. */
export async function runForOne<Row extends object>(
  target: Queryable,
  statement: TypedStatement<Row>,
  name?: string,
): Promise<Row> {
  return onlyRow(await run(target, statement, name));
}

/** The row of a result that always has one row: of an aggregate, or of a select without a table. */
export function onlyRow<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined || rows.length > 1) throw new Error(`expected one row, found ${rows.length}`);
  return row;
}

function createBuilder<Tables>(): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
}
