import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { reasonOf } from '../../thrown.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { qualified } from '../statements/identifiers.ts';
import type { Queryable } from '../statements/statement.ts';

/**
 * Prepares the database for text search, if the projection uses it: creates the extension `pg_trgm` if it is missing, and checks for ICU's
 * rules for upper and lower case.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE` that says what to do
 */
export async function requireTextSearch(db: Queryable, { id, columns }: Projection): Promise<void> {
  const [column] = Object.entries(columns).find(([, { flags }]) => flags.search) ?? [];
  if (column === undefined) return;
  const refuse = (problem: string, cause?: unknown) =>
    new RefoldError(
      'DATABASE_UNSUITABLE',
      `${id}: column '${column}' is declared with .index({ search: true }), ${problem}, or declare it with .index().`,
      {},
      { cause },
    );
  if (!(await hasIcu(db)))
    throw refuse(
      `which needs a UTF-8 database of a PostgreSQL built with ICU; this one has no collation "und-x-icu". Use one`,
    );
  if ((await extensionSchema(db)) !== undefined) return;
  try {
    await db.query({ text: 'create extension if not exists pg_trgm' });
  } catch (cause) {
    if (sqlStateOf(cause) === undefined) throw cause;
    const reason = reasonOf(cause);
    throw refuse(
      `which needs PostgreSQL's extension pg_trgm, and it could not be created (${reason}). Have an administrator install it (Debian and Ubuntu: part of the server's package) and run 'create extension pg_trgm' in this database`,
      cause,
    );
  }
}

/** The operator class for a trigram index, with the schema of the extension. */
export async function trigramOperators(db: Queryable): Promise<string> {
  const schema = await extensionSchema(db);
  return schema === undefined ? 'gin_trgm_ops' : qualified(schema, 'gin_trgm_ops');
}

async function extensionSchema(db: Queryable): Promise<string | undefined> {
  const rows = await db.query<{ schema: string }>({
    text: `
      select nspname as schema
      from pg_extension
      join pg_namespace on pg_namespace.oid = extnamespace
      where extname = 'pg_trgm'`,
  });
  return rows[0]?.schema;
}

async function hasIcu(db: Queryable): Promise<boolean> {
  const rows = await db.query({
    text: `
      select from pg_collation
      where collname = 'und-x-icu' and current_setting('server_encoding') = 'UTF8'`,
  });
  return rows.length > 0;
}
