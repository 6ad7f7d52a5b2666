import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';

/** A statement and its bound values. */
export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Prepares the statement under this name, once per connection. For frequent statements. */
  readonly name?: string;
}

/** Anything that runs statements: a database (any connection of its pool) or a transaction. */
export interface Queryable {
  query<Row extends object>(statement: Statement): Promise<Row[]>;
}

/** Any table with any columns: tables of read models are known only at run time. */
export type AnyTables = Record<string, Record<string, unknown>>;

/** Kysely as a statement builder. It compiles and never connects. Run statements with {@link run}. */
export const builder = new Kysely<AnyTables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

/** Runs a statement that the builder compiled. */
export function run<Row extends object>(target: Queryable, query: CompiledQuery<Row>): Promise<Row[]> {
  return target.query<Row>({ text: query.sql, values: query.parameters });
}
