import { parseHostList } from './host-list.ts';
import { checkBoolean, checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';

export interface DatabaseOptions {
  /**
   * `postgres://…`, with several hosts as `postgres://user@host1:5432,host2:5433/db?target_session_attrs=read-write`: a new connection goes to
   * the first that fits. Without a URL, Refold runs an embedded server with its data in `.refold/`; `refold start` does so with `--embedded`. The commands of `refold` prefer the environment's
   * `DATABASE_URL`; `createRefold` reads no environment, so give it `process.env.DATABASE_URL` here where it should.
   */
  readonly url?: string;
  /**
   * A streaming replica of the database at `url`, from which GraphQL queries are answered where it is near enough (`maxReadLag`) and holds the
   * position that they demand; all else, and all where it is not, goes to the primary. One server, not several behind an address.
   * @default none: the primary answers
   */
  readonly readUrl?: string;
  /**
   * By how much the replica may be behind the primary to be read from, in milliseconds. A query that demands a position (`@after`) gets it
   * in any case.
   * @default 1000
   */
  readonly maxReadLag?: number;
  /**
   * Connections that this process opens to the database, in all: half for what clients read, half for batches and appends, four of them where inline
   * projections fold appends, one to own what it maintains, one to listen. To a replica it opens no more than the share of reads and one.
   * Choose it so that all processes together stay below the server's `max_connections`. At least 6; 8 with inline projections.
   * @default 26
   */
  readonly maxConnections?: number;
  /** Schema of the read tables and their stable views. @default 'read_models' */
  readonly readSchema?: string;
  /**
   * Whether PostgreSQL wakes this process with LISTEN and NOTIFY. Set it to false behind a pooler in transaction mode (PgBouncer and its
   * like); `runtime.ownership` must be `'lease'` then. Where it is false all news are found by polling, nothing is kept in a session, and
   * `gateway.statementTimeout` is set in each transaction.
   * @default true
   */
  readonly notifications?: boolean;
  /**
   * Whether statements that run often are prepared once per connection. Set it to false behind a pooler that can't keep track of them:
   * PgBouncer before 1.21, or with `max_prepared_statements = 0`.
   * @default true
   */
  readonly prepare?: boolean;
  /**
   * How long an append waits for a stream, or a row of an inline projection, that another transaction holds, in milliseconds; then it fails with
   * `STREAM_LOCKED`, nothing of it is written, and it can be sent again. Appends that travelled with it go on.
   * @default 5000
   */
  readonly appendLockTimeout?: number;
  /**
   * For how long the database may send nothing while a statement is under way, in milliseconds. Then another connection asks it. A statement
   * that it still works on goes on, however long it takes. In all other cases the connection is closed and replaced, and the statement fails.
   * @default 5000
   */
  readonly answerTimeout?: number;
}

/** Checked and complete. */
export type CheckedDatabase = Omit<Required<DatabaseOptions>, 'url' | 'readUrl'> & {
  readonly url: string | undefined;
  readonly readUrl: string | undefined;
};

const numbers = {
  maxConnections: { default: 26, min: 1, max: 1000 },
  appendLockTimeout: { default: 5000, min: 1, max: 3_600_000 },
  answerTimeout: { default: 5000, min: 100, max: 3_600_000 },
  maxReadLag: { default: 1000, min: 10, max: 3_600_000 },
} as const satisfies Record<string, NumberRule>;

/** @throws RefoldError `INVALID_CONFIG` */
export function checkDatabase(database: DatabaseOptions): CheckedDatabase {
  refuseUnknown('database', database, [
    'url',
    'readUrl',
    'readSchema',
    'notifications',
    'prepare',
    ...Object.keys(numbers),
  ]);
  const { url, readUrl, readSchema = 'read_models', notifications = true, prepare = true } = database;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(readSchema) || readSchema === 'refold' || readSchema.startsWith('pg_'))
    throw invalidConfig(
      `database.readSchema '${readSchema}' can't hold read tables; use a name such as 'read_models'.`,
    );
  if (url !== undefined) checkDatabaseUrl('database.url', url);
  if (readUrl !== undefined) checkDatabaseUrl('database.readUrl', readUrl);
  if (database.maxReadLag !== undefined && readUrl === undefined)
    throw invalidConfig('database.maxReadLag is for a replica; name it with database.readUrl, or leave both out.');
  return Object.freeze({
    url,
    readUrl,
    readSchema,
    notifications: checkBoolean('database.notifications', notifications),
    prepare: checkBoolean('database.prepare', prepare),
    ...checkNumbers('database', database, numbers),
  });
}

/** @throws RefoldError `INVALID_CONFIG`; the message does not hold the URL, which may hold a password. */
export function checkDatabaseUrl(source: string, url: string): void {
  if (!/^postgres(ql)?:\/\//.test(url))
    throw invalidConfig(`${source} is no PostgreSQL address; it starts with 'postgres://'.`);
  if (!parseHostList(url))
    throw invalidConfig(
      `${source} can't be read. Write it as 'postgres://user:password@host:port/database', with percent signs for what is special in the password; ` +
        "several hosts as 'host1:port,host2:port', and 'target_session_attrs' as any, read-write, read-only, primary, standby or prefer-standby.",
    );
}
