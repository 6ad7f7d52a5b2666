import pg from 'pg';
import { parseHostList } from '../../config/host-list.ts';
import { RefoldError } from '../../errors.ts';
import { closeIdleOnSilence, createServerProbe } from './answer-deadline.ts';
import { columnParsers } from './column-parsers.ts';
import { connectWhenFree } from './connect-when-free.ts';
import { copyInto } from './copy-into.ts';
import { isConnectionLoss, nothingSent, translateDatabaseError, unknownOutcome } from './database-errors.ts';
import { createHostChoice } from './host-choice.ts';
import { limitPrepared } from './prepared-limit.ts';
import { type Pipeline, roundTrip } from './round-trip.ts';
import { settleSession, settleTransaction } from './session-settings.ts';
import type { Queryable, Statement } from './statement.ts';
import { WatchedClient, type WatchedClientConfig } from './watched-client.ts';

export interface DatabaseOptions {
  /** Connection URL, such as `postgres://user:password@host:5432/database`. May name several hosts, see {@link parseHostList}. */
  readonly url: string;
  /** Seen in `pg_stat_activity`. @default 'refold' */
  readonly applicationName?: string;
  /** Connections that the pool may open. @default 10 */
  readonly maxConnections?: number;
  /** The server ends a statement that runs longer, in milliseconds. @default no limit */
  readonly statementTimeoutMs?: number;
  /** How long to wait for a connection, in milliseconds; also for one that another process gives back, where the server has none left. @default 10000 */
  readonly connectTimeoutMs?: number;
  /**
   * For how long the server may send nothing while a statement is under way, in milliseconds. Then another connection asks it. Where the server
   * can't be asked, or does not work on the statement, the connection is closed, and the statement fails.
   * @default 5000
   */
  readonly answerTimeoutMs?: number;
  /**
   * Whether all statements are short: after `answerTimeoutMs` the connection is closed, and the server is not asked.
   * @default false
   */
  readonly shortStatements?: boolean;
  /**
   * Sends statements without waiting for the answers to those before: for connections whose users know what they send. Not for COPY.
   * The first statement of a transaction that only reads leaves with its `begin`.
   * @default false
   */
  readonly pipeline?: boolean;
  /** Whether statements with a name are prepared. Some poolers can't keep what is prepared. @default true */
  readonly prepare?: boolean;
  /**
   * Whether a connection is a session of its own. Behind a pooler in transaction mode it is not: what would be set for the session
   * is then set in each transaction, or not at all.
   * @default true
   */
  readonly sessions?: boolean;
  /**
   * Has the planner take indexes even for a table that it thinks is small: for connections that look up few rows again and again, whose plans
   * are kept while the table grows. Only where a connection is a session.
   * @default false
   */
  readonly byIndex?: boolean;
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
  /** Where statements may be sent before those before them are answered. */
  readonly pipeline: Pipeline | undefined;
  /** Runs `copy … from stdin` with these pieces of its text format, whatever their borders. */
  copyInto(text: string, pieces: Iterable<string>): Promise<void>;
}

/** A connection of one's own. Give it back. */
export interface Session extends Queryable {
  /** Where statements may be sent before those before them are answered. */
  readonly pipeline: Pipeline | undefined;
  /** With an error, the connection is closed instead of going back to the pool. */
  release(broken?: Error): void;
}

/** A pool of connections whose values are parsed as Refold wants them and whose errors are RefoldErrors. */
export interface Database extends Queryable {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Commits when `work` returns, rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** A connection of one's own; give it back with `release()`. Its errors are the driver's. */
  connect(): Promise<pg.PoolClient>;
  /** As {@link connect}, with errors translated. */
  session(): Promise<Session>;
  close(): Promise<void>;
}

const defaultConnectTimeoutMs = 10_000;

/** Opens no connection yet: the first statement does. */
export function createDatabase(options: DatabaseOptions): Database {
  const { url, prepare = true, sessions = true, pipeline = false, statementTimeoutMs } = options;
  const { connectTimeoutMs = defaultConnectTimeoutMs } = options;
  const pool = new pg.Pool({
    ...connectionConfig(options),
    ...(pipeline ? { pipeline } : {}),
    Client: SessionClient,
    max: options.maxConnections ?? 10,
    ...(sessions ? { onConnect: (client: pg.ClientBase) => settleSession(client, options) } : {}),
  });
  // A connection that ends (restart of the server, pg_terminate_backend) fails the statement that it is running, leaves the
  // pool, and the next statement opens another. Without listeners it would end the process, idle or in use. The pool hangs the connection on
  // the error, which a statement may fail with, too: whoever logs that would log hundreds of lines.
  pool.on('error', (error) => void Reflect.deleteProperty(error, 'client'));
  closeIdleOnSilence(pool);

  const orTranslated = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => Promise.reject(translateDatabaseError(error, url)));
  const connect = () =>
    connectWhenFree(pool, connectTimeoutMs).catch((error: unknown) =>
      Promise.reject(nothingSent(translateDatabaseError(error, url))),
    );
  const queryOnce: Database['query'] = async <Row extends object>(statement: Statement) => {
    const client = await connect();
    try {
      const rows = await rowsOf<Row>(client, statement, prepare);
      client.release();
      return rows;
    } catch (error) {
      client.release(isConnectionLoss(error));
      throw translateDatabaseError(error, url);
    }
  };
  const settings = sessions ? '' : settleTransaction(statementTimeoutMs);
  const transaction: Database['transaction'] = async (work, transactionOptions) =>
    inTransaction(await connect(), { url, prepare, settings, pipeline }, work, transactionOptions);
  let closed: Promise<void> | undefined;

  return {
    url,
    pool,
    // A limit needs a transaction to be local to.
    query: (statement) =>
      sessions || statementTimeoutMs === undefined ? queryOnce(statement) : transaction((tx) => tx.query(statement)),
    connect,
    async session() {
      const client = await connect();
      return {
        pipeline: pipeline ? sendTogether(client) : undefined,
        query: (statement) => orTranslated(rowsOf(client, statement, prepare)),
        release: (broken) => client.release(broken),
      };
    },
    transaction,
    close: () => {
      closed ??= pool.end();
      return closed;
    },
  };
}

/** What every connection of Refold is opened with, in a pool or alone; for a {@link SessionClient}. */
export function connectionConfig(options: Omit<DatabaseOptions, 'maxConnections'>): WatchedClientConfig {
  const { sessions = true, shortStatements = false, answerTimeoutMs = 5000 } = options;
  const { connectTimeoutMs = defaultConnectTimeoutMs, applicationName = 'refold' } = options;
  const list = parseHostList(options.url);
  const config = {
    connectionString: list?.url ?? options.url,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    types: columnParsers,
  };
  const probeConfig = { ...config, application_name: `${applicationName}-probe` };
  const probe = { config: probeConfig, sessions, afterMs: answerTimeoutMs, limitMs: connectTimeoutMs };
  return {
    ...config,
    answerDeadline: {
      afterMs: answerTimeoutMs,
      probe: shortStatements ? undefined : createServerProbe(probe),
    },
    hostChoice: list && createHostChoice(list, probeConfig),
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
export class SessionClient extends WatchedClient implements Startup {
  constructor(config?: WatchedClientConfig) {
    super(config);
    limitPrepared(this.connection);
  }

  // Called by the driver when it opens the session. 'ISO, MDY' is how the server itself spells it: PgBouncer compares the texts.
  getStartupConf(): Readonly<Record<string, string>> {
    const driver = pg.Client.prototype as unknown as Startup; // its types leave the method out
    return { ...driver.getStartupConf.call(this), TimeZone: 'UTC', DateStyle: 'ISO, MDY' };
  }
}

function setLocally(setting: string, milliseconds: number | undefined): string {
  return milliseconds === undefined ? '' : `; set local ${setting} = ${Math.trunc(milliseconds)}`;
}

/** One packet, where each statement would be one: for this process and the server, which both wake up for each. */
function sendTogether(client: pg.PoolClient): Pipeline {
  const { stream } = (client as SessionClient & pg.PoolClient).connection; // the pool makes its clients from this class
  return (send) => {
    stream.cork();
    try {
      return send();
    } finally {
      stream.uncork();
    }
  };
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
  { url, prepare, settings, pipeline }: { url: string; prepare: boolean; settings: string; pipeline: boolean },
  work: (tx: Transaction) => Promise<T>,
  { isolation = 'read committed', readOnly = false, idleTimeoutMs }: TransactionOptions = {},
): Promise<T> {
  const translate = (error: unknown) => translateDatabaseError(error, url);
  const query: Transaction['query'] = (statement) =>
    rowsOf<never>(client, statement, prepare).catch((error: unknown) => Promise.reject(translate(error)));
  const idle = setLocally('idle_in_transaction_session_timeout', idleTimeoutMs);
  // One message, however many settings.
  const begin = { text: `begin isolation level ${isolation}${readOnly ? ' read only' : ''}${settings}${idle}` };
  const together = pipeline ? sendTogether(client) : undefined;
  const transaction: Transaction = {
    client,
    pipeline: together,
    query,
    copyInto: (text, pieces) =>
      copyInto(client, text, pieces).catch((error: unknown) => Promise.reject(translate(error))),
  };
  let broken: Error | undefined;
  let committing = false;
  try {
    const result = together && readOnly ? await beginAlong(together) : await beginFirst();
    committing = true;
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
    // Errors of `work` itself pass as they are, whatever became of the connection; those of the driver come from the commit or the bare client.
    const translated =
      error instanceof pg.DatabaseError || (broken && isConnectionLoss(error)) ? translate(error) : error;
    if (committing) throw readOnly ? translated : unknownOutcome(translated);
    throw translated instanceof RefoldError ? nothingSent(translated) : translated; // what was not committed is not done
  } finally {
    client.release(broken);
  }

  async function beginFirst(): Promise<T> {
    await query(begin);
    return work(transaction);
  }

  /** Only to read: a statement that wrote would be a transaction of its own, where the `begin` fails. What it reads is given to nobody then. */
  async function beginAlong(send: Pipeline): Promise<T> {
    let begun: Promise<unknown> = Promise.resolve();
    const onceBegun: Transaction['query'] = async (statement) =>
      (await Promise.all([query<never>(statement), begun]))[0];
    const [, result] = await roundTrip<[unknown, T]>(send, [
      () => {
        begun = query(begin);
        return begun;
      },
      async () => work({ ...transaction, query: onceBegun }),
    ]);
    return result;
  }
}
