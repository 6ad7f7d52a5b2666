import pg from 'pg';
import { parseHostList } from '../../config/host-list.ts';
import { answerSize } from '../statements/answer-size.ts';
import { columnParsers } from '../statements/column-parsers.ts';
import type { Pipeline } from '../statements/round-trip.ts';
import type { AnswerSize, Elsewhere, Queryable, Statement } from '../statements/statement.ts';
import { closeIdleOnSilence, createServerProbe } from './answer-deadline.ts';
import { connectWhenFree } from './connect-when-free.ts';
import { isConnectionLoss, nothingSent, translateDatabaseError } from './database-errors.ts';
import { createHostChoice } from './host-choice.ts';
import { limitPrepared } from './prepared-limit.ts';
import { settleSession, settleTransaction } from './session-settings.ts';
import {
  inTransaction,
  rowsOf,
  type StatementCounts,
  sendTogether,
  type Transaction,
  type TransactionOptions,
} from './transaction.ts';
import { WatchedClient, type WatchedClientConfig } from './watched-client.ts';

export interface ConnectionOptions {
  /** Connection URL, such as `postgres://user:password@host:5432/database`. May list several hosts, see {@link parseHostList}. */
  readonly url: string;
  /** The name in `pg_stat_activity`. @default 'refold' */
  readonly applicationName?: string;
  /** The maximum of connections in the pool. @default 10 */
  readonly maxConnections?: number;
  /** The server cancels a statement that runs longer, in milliseconds. @default no limit */
  readonly statementTimeoutMs?: number;
  /**
   * How long to wait for a connection, in milliseconds. Includes the wait for a free connection if the server has reached its limit.
   * @default 10000
   */
  readonly connectTimeoutMs?: number;
  /**
   * How long the server may be silent while a statement runs, in milliseconds. After that, another connection asks the server. If it cannot
   * be reached, or is not working on the statement, the connection is closed and the statement fails.
   * @default 5000
   */
  readonly answerTimeoutMs?: number;
  /**
   * Whether all statements are short. After `answerTimeoutMs` the connection is then closed without asking the server.
   * @default false
   */
  readonly shortStatements?: boolean;
  /**
   * Pipelines statements: sends them without waiting for earlier results. Only for code that is written for it. Not for COPY. The first
   * statement of a read-only transaction is sent together with its `begin`.
   * @default false
   */
  readonly pipeline?: boolean;
  /** Whether named statements are prepared. Some poolers do not support prepared statements. @default true */
  readonly prepare?: boolean;
  /**
   * Whether a connection is a session of its own. Behind a pooler in transaction mode it is not: session settings are then set in each
   * transaction, or not at all.
   * @default true
   */
  readonly sessions?: boolean;
  /**
   * Makes the planner use indexes even for a table that it considers small. For connections that repeat lookups of few rows, whose cached
   * plans stay in use while the table grows. Requires `sessions`.
   * @default false
   */
  readonly byIndex?: boolean;
  /**
   * The most bytes that the rows of a statement may have, or those of all statements with one {@link AnswerSize}. More are refused with
   * `ANSWER_TOO_LARGE`. @default no limit
   */
  readonly maxAnswerSize?: number;
  /** The application's other databases. @default there are none */
  readonly elsewhere?: Elsewhere | undefined;
}

/** A reserved connection. The caller must release it. */
export interface Session extends Queryable {
  /** Set if statements can be pipelined. */
  readonly pipeline: Pipeline | undefined;
  /** Returns the connection to the pool. With an error, closes it instead. */
  release(broken?: Error): void;
}

/** A connection pool that parses values into Refold's types and translates errors to RefoldErrors. */
export interface Database extends Queryable {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Of all its connections. */
  readonly counts: StatementCounts;
  /** What the statements of one answer may receive together; undefined if there is no limit. */
  answerSize(): AnswerSize | undefined;
  /** Commits if `work` returns, rolls back if it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** A reserved connection; release it with `release()`. Its errors are those of the driver. */
  connect(): Promise<pg.PoolClient>;
  /** Like {@link connect}, with translated errors. */
  session(): Promise<Session>;
  close(): Promise<void>;
}

const defaultConnectTimeoutMs = 10_000;

/** Creates a pool. The first statement opens the first connection. */
export function createDatabase(options: ConnectionOptions): Database {
  const { url, prepare = true, sessions = true, pipeline = false, statementTimeoutMs, elsewhere } = options;
  const { connectTimeoutMs = defaultConnectTimeoutMs } = options;
  const pool = new pg.Pool({
    ...connectionConfig(options),
    ...(pipeline ? { pipeline } : {}),
    Client: SessionClient,
    max: options.maxConnections ?? 10,
    ...(sessions ? { onConnect: (client: pg.ClientBase) => settleSession(client, options) } : {}),
  });
  // A connection that ends (server restart, pg_terminate_backend) fails its current statement and leaves the pool. The next statement opens
  // another. Without listeners the error would end the process, for idle and busy connections alike. The pool attaches the connection to
  // the error, which a statement may also fail with; logging it would print hundreds of lines.
  pool.on('error', (error) => void Reflect.deleteProperty(error, 'client'));
  closeIdleOnSilence(pool);

  const orTranslated = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => Promise.reject(translateDatabaseError(error, url)));
  const connect = () =>
    connectWhenFree(pool, connectTimeoutMs).catch((error: unknown) =>
      Promise.reject(nothingSent(translateDatabaseError(error, url))),
    );
  const counts = { statements: 0 };
  const sending = { prepare, counts };
  const queryOnce: Database['query'] = async <Row extends object>(statement: Statement) => {
    const client = await connect();
    try {
      const rows = await rowsOf<Row>(client, statement, sending);
      client.release();
      return rows;
    } catch (error) {
      client.release(isConnectionLoss(error));
      throw translateDatabaseError(error, url);
    }
  };
  const settings = sessions ? '' : settleTransaction(statementTimeoutMs);
  const transaction: Database['transaction'] = async (work, transactionOptions) =>
    inTransaction(await connect(), { url, ...sending, settings, pipeline, elsewhere }, work, transactionOptions);
  let closed: Promise<void> | undefined;

  return {
    url,
    pool,
    elsewhere,
    counts,
    answerSize: () => (options.maxAnswerSize === undefined ? undefined : answerSize(options.maxAnswerSize)),
    // A statement timeout must be local to a transaction.
    query: (statement) =>
      sessions || statementTimeoutMs === undefined ? queryOnce(statement) : transaction((tx) => tx.query(statement)),
    connect,
    async session() {
      const client = await connect();
      return {
        pipeline: pipeline ? sendTogether(client) : undefined,
        elsewhere,
        query: (statement) => orTranslated(rowsOf(client, statement, sending)),
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

/** The configuration of every connection that Refold opens, pooled or single; for a {@link SessionClient}. */
export function connectionConfig(options: Omit<ConnectionOptions, 'maxConnections'>): WatchedClientConfig {
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
    maxAnswerSize: options.maxAnswerSize,
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
 * A client whose session writes timestamps and dates in the format that the parsers expect. The settings are startup parameters, not
 * `options`: PgBouncer refuses `options`, but tracks these two settings per client, even in transaction mode.
 *
 * A subclass, because the driver has no option for this and its pool creates its clients from a class.
 */
export class SessionClient extends WatchedClient implements Startup {
  constructor(config?: WatchedClientConfig) {
    super(config);
    limitPrepared(this.connection);
  }

  // The driver calls this when it opens the session. 'ISO, MDY' is the server's own spelling: PgBouncer compares the texts.
  getStartupConf(): Readonly<Record<string, string>> {
    const driver = pg.Client.prototype as unknown as Startup; // the driver's types lack this method
    return { ...driver.getStartupConf.call(this), TimeZone: 'UTC', DateStyle: 'ISO, MDY' };
  }
}
