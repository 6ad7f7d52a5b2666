import pg from 'pg';
import { RefoldError } from '../errors.ts';
import { columnParsers } from './column-parsers.ts';
import { translateDatabaseError } from './database-errors.ts';
import type { Queryable, Statement } from './statement.ts';

export interface DatabaseOptions {
  /** Connection URL, such as `postgres://user:password@host:5432/database`. */
  readonly url: string;
  /** Seen in `pg_stat_activity`. @default 'refold' */
  readonly applicationName?: string;
  /** Connections that the pool may open. @default 10 */
  readonly maxConnections?: number;
  /** The server ends a statement that runs longer, in milliseconds. @default no limit */
  readonly statementTimeoutMs?: number;
  /** How long to wait for a connection, in milliseconds. @default 10000 */
  readonly connectTimeoutMs?: number;
}

export interface TransactionOptions {
  /** @default 'read committed' */
  readonly isolation?: 'read committed' | 'repeatable read';
  /** @default false */
  readonly readOnly?: boolean;
}

/** One transaction on one connection. */
export interface Transaction extends Queryable {
  readonly client: pg.PoolClient;
}

/** A pool of connections whose values are parsed as Refold wants them and whose errors are RefoldErrors. */
export interface Database extends Queryable {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Commits when `work` returns, rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** A connection of one's own; give it back with `release()`. Its errors are the driver's. */
  connect(): Promise<pg.PoolClient>;
  close(): Promise<void>;
}

/** Opens no connection yet: the first statement does. */
export function createDatabase(options: DatabaseOptions): Database {
  const { url } = options;
  const pool = new pg.Pool({
    ...connectionConfig(options),
    max: options.maxConnections ?? 10,
    onConnect: noticeDeadClients,
  });
  // A connection that ends (restart of the server, pg_terminate_backend) fails the statement that it is running, leaves the
  // pool, and the next statement opens another. Without listeners it would end the process, idle or in use.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));

  const orTranslated = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => Promise.reject(translateDatabaseError(error, url)));
  const connect = () => orTranslated(pool.connect());
  let closed: Promise<void> | undefined;

  return {
    url,
    pool,
    query: (statement) => orTranslated(rowsOf(pool, statement)),
    connect,
    transaction: async (work, transactionOptions) => inTransaction(await connect(), url, work, transactionOptions),
    close: () => {
      closed ??= pool.end();
      return closed;
    },
  };
}

/** What every connection of Refold is opened with, in a pool or alone. */
export function connectionConfig(options: Omit<DatabaseOptions, 'maxConnections'>): pg.ClientConfig {
  return {
    connectionString: withSessionSettings(options.url),
    application_name: options.applicationName ?? 'refold',
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    keepAlive: true,
    types: columnParsers,
    ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
  };
}

// The parsers read the texts of timestamps and dates in this form only. In the URL, since what a URL says wins over the rest.
function withSessionSettings(url: string): string {
  if (!URL.canParse(url)) return url;
  const withSettings = new URL(url);
  const given = withSettings.searchParams.get('options') ?? '';
  withSettings.searchParams.set('options', `${given} -c TimeZone=UTC -c DateStyle=ISO`.trim());
  return withSettings.href;
}

/**
 * Has the server notice within seconds, in the middle of a statement, that this process is gone, so that its locks don't
 * outlive it. Where the server is too old (before 14) or its system can't, TCP keepalive finds out later.
 */
export async function noticeDeadClients(client: pg.ClientBase): Promise<void> {
  await client.query("set client_connection_check_interval = '5s'").catch((error: unknown) => {
    if (!(error instanceof pg.DatabaseError)) throw error;
  });
}

async function rowsOf<Row extends object>(target: pg.Pool | pg.PoolClient, statement: Statement): Promise<Row[]> {
  const { text, values, name } = statement;
  const result = await target.query<Row>({
    text,
    ...(values === undefined ? {} : { values: values as unknown[] }), // pg does not change what it is given
    ...(name === undefined ? {} : { name }),
  });
  return result.rows;
}

async function inTransaction<T>(
  client: pg.PoolClient,
  url: string,
  work: (tx: Transaction) => Promise<T>,
  { isolation = 'read committed', readOnly = false }: TransactionOptions = {},
): Promise<T> {
  const translate = (error: unknown) => translateDatabaseError(error, url);
  const query: Transaction['query'] = (statement) =>
    rowsOf<never>(client, statement).catch((error: unknown) => Promise.reject(translate(error)));
  let broken: Error | undefined;
  try {
    await query({ text: `begin isolation level ${isolation}${readOnly ? ' read only' : ''}` });
    const result = await work({ client, query });
    const { command } = await client.query('commit');
    // PostgreSQL answers a commit of a failed transaction with ROLLBACK, and no error.
    if (command !== 'COMMIT') {
      const problem = 'The transaction was rolled back: one of its statements had failed, and the failure was ignored.';
      throw new RefoldError('DATABASE_ERROR', problem);
    }
    return result;
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    // Errors of `work` itself pass as they are; those of the driver come from the commit or the bare client.
    throw error instanceof pg.DatabaseError || broken ? translate(error) : error;
  } finally {
    client.release(broken);
  }
}
