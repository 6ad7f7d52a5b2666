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
  /** How long to wait for the answer to a statement, in milliseconds; its connection is given up then. @default no limit */
  readonly answerTimeoutMs?: number;
  /** Whether statements with a name are prepared. Some poolers can't keep what is prepared. @default true */
  readonly prepare?: boolean;
  /**
   * Whether a connection is a session of its own. Behind a pooler in transaction mode it is not: what would be set for the session
   * is then set in each transaction, or not at all.
   * @default true
   */
  readonly sessions?: boolean;
}

export interface TransactionOptions {
  /** @default 'read committed' */
  readonly isolation?: 'read committed' | 'repeatable read';
  /** @default false */
  readonly readOnly?: boolean;
  /**
   * The server rolls the transaction back when it hears nothing of it for so long, in milliseconds, so that a process that stalls in
   * the middle does not keep its locks. @default no limit
   */
  readonly idleTimeoutMs?: number;
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
  const { url, prepare = true, sessions = true, statementTimeoutMs } = options;
  const pool = new pg.Pool({
    ...connectionConfig(options),
    Client: SessionClient,
    max: options.maxConnections ?? 10,
    ...(sessions ? { onConnect: noticeDeadClients } : {}),
  });
  // A connection that ends (restart of the server, pg_terminate_backend) fails the statement that it is running, leaves the
  // pool, and the next statement opens another. Without listeners it would end the process, idle or in use.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));

  const orTranslated = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => Promise.reject(translateDatabaseError(error, url)));
  const connect = () => orTranslated(pool.connect());
  const settings = sessions ? '' : setLocally('statement_timeout', statementTimeoutMs);
  const transaction: Database['transaction'] = async (work, transactionOptions) =>
    inTransaction(await connect(), { url, prepare, settings }, work, transactionOptions);
  let closed: Promise<void> | undefined;

  return {
    url,
    pool,
    // A setting needs a transaction to be local to.
    query: (statement) =>
      settings === '' ? orTranslated(rowsOf(pool, statement, prepare)) : transaction((tx) => tx.query(statement)),
    connect,
    transaction,
    close: () => {
      closed ??= pool.end();
      return closed;
    },
  };
}

/** What every connection of Refold is opened with, in a pool or alone; for a {@link SessionClient}. */
export function connectionConfig(options: Omit<DatabaseOptions, 'maxConnections'>): pg.ClientConfig {
  const { sessions = true, statementTimeoutMs, answerTimeoutMs } = options;
  return {
    connectionString: options.url,
    application_name: options.applicationName ?? 'refold',
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    keepAlive: true,
    types: columnParsers,
    // PgBouncer refuses a connection that asks for this as it opens.
    ...(statementTimeoutMs === undefined || !sessions ? {} : { statement_timeout: statementTimeoutMs }),
    ...(answerTimeoutMs === undefined ? {} : { query_timeout: answerTimeoutMs }),
  };
}

interface Startup {
  getStartupConf(): Readonly<Record<string, string>>;
}

/**
 * A client whose session writes timestamps and dates in the one form that the parsers read. Asked for by name in the first message, not
 * as `options`: PgBouncer refuses those, but keeps these two settings for each of its clients, in transaction mode too.
 *
 * Inherits, since the driver has no option for it, and its pool makes its clients from a class.
 */
export class SessionClient extends pg.Client implements Startup {
  // Called by the driver when it opens the session. 'ISO, MDY' is how the server itself spells it: PgBouncer compares the texts.
  getStartupConf(): Readonly<Record<string, string>> {
    const driver = pg.Client.prototype as unknown as Startup; // its types leave the method out
    return { ...driver.getStartupConf.call(this), TimeZone: 'UTC', DateStyle: 'ISO, MDY' };
  }
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

function setLocally(setting: string, milliseconds: number | undefined): string {
  return milliseconds === undefined ? '' : `; set local ${setting} = ${Math.trunc(milliseconds)}`;
}

async function rowsOf<Row extends object>(
  target: pg.Pool | pg.PoolClient,
  statement: Statement,
  prepare: boolean,
): Promise<Row[]> {
  const { text, values, name } = statement;
  const result = await target.query<Row>({
    text,
    ...(values === undefined ? {} : { values: values as unknown[] }), // pg does not change what it is given
    ...(name === undefined || !prepare ? {} : { name }),
  });
  return result.rows;
}

async function inTransaction<T>(
  client: pg.PoolClient,
  { url, prepare, settings }: { url: string; prepare: boolean; settings: string },
  work: (tx: Transaction) => Promise<T>,
  { isolation = 'read committed', readOnly = false, idleTimeoutMs }: TransactionOptions = {},
): Promise<T> {
  const translate = (error: unknown) => translateDatabaseError(error, url);
  const query: Transaction['query'] = (statement) =>
    rowsOf<never>(client, statement, prepare).catch((error: unknown) => Promise.reject(translate(error)));
  const idle = setLocally('idle_in_transaction_session_timeout', idleTimeoutMs);
  let broken: Error | undefined;
  try {
    // One message, however many settings.
    await query({ text: `begin isolation level ${isolation}${readOnly ? ' read only' : ''}${settings}${idle}` });
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
