import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';

/** A statement and what is bound to it. */
export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Prepares the statement once in each connection under this name; for statements that run often. */
  readonly name?: string;
}

/** What takes a statement: a database (any connection of its pool) or a transaction. */
export interface Queryable {
  query<Row extends object>(statement: Statement): Promise<Row[]>;
}

/** Any table with any column: tables of read models are only known at run time. */
export type AnyTables = Record<string, Record<string, unknown>>;

/** Kysely, to write statements with; it compiles and never connects. Run them with {@link run}. */
export const builder = new Kysely<AnyTables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

/** Runs what the builder compiled. */
export function run<Row extends object>(target: Queryable, query: CompiledQuery<Row>): Promise<Row[]> {
  return target.query<Row>({ text: query.sql, values: query.parameters });
}
