import { parseHostList } from './host-list.ts';
import { checkBoolean, checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';
import type { OptionRule } from './option-rules.ts';

export interface DatabaseOptions {
  /**
   * The connection URL: `postgres://…`, or with several hosts `postgres://user@host1:5432,host2:5433/db?target_session_attrs=read-write`. A
   * new connection goes to the first host that matches.
   * Without a URL, Refold runs an embedded server with its data in `.refold/`; `refold start` does so with `--embedded`.
   * The commands of `refold` prefer the environment, as for every option. `createRefold` does not read it: pass `process.env.DATABASE_URL` here
   * if you need it.
   */
  readonly url?: string;
  /**
   * The URL of a streaming replica of the database at `url`. GraphQL queries are served from it while it is close enough to the primary
   * (`maxReadLag`) and has the position that they require. Everything else goes to the primary. It must be one server, not several behind
   * one address.
   * @default none: the primary serves all queries
   */
  readonly readUrl?: string;
  /**
   * Maximum lag of the replica for reads from it, in milliseconds. A query that requires a position (`@after`) always gets it.
   * @default 1000
   */
  readonly maxReadLag?: number;
  /**
   * Maximum number of connections of this process to the database, in total: half for clients' reads; half for batches and appends, two to
   * four of which fold appends if there are inline projections; one to own what the process maintains; one to listen; two for `gateway.admin` if it is set. To a replica the process
   * opens at most the share of reads and one more. Keep the sum over all processes below the server's `max_connections`. The minimum is 6,
   * or 8 with inline projections; 2 more with `gateway.admin`.
   * @default 26
   */
  readonly maxConnections?: number;
  /** The schema of the read tables and their stable views. @default 'read_models' */
  readonly readSchema?: string;
  /**
   * Whether PostgreSQL wakes this process with LISTEN and NOTIFY. Set it to false behind a pooler in transaction mode (such as PgBouncer);
   * `runtime.ownership` must be `'lease'` then. If it is false, changes are found by polling, no session state is used, and
   * `gateway.statementTimeout` is set in each transaction.
   * @default true
   */
  readonly notifications?: boolean;
  /**
   * Whether frequent statements are prepared once per connection. Set it to false behind a pooler that cannot track prepared statements:
   * PgBouncer before 1.21, or with `max_prepared_statements = 0`.
   * @default true
   */
  readonly prepare?: boolean;
  /**
   * How long an append waits in total for what other transactions hold, in milliseconds: a stream, an idempotency key, a row of an inline
   * projection. Then it fails with `STREAM_LOCKED` and nothing of it is written; it can be retried. Other appends do not wait.
   * @default 5000
   */
  readonly appendLockTimeout?: number;
  /**
   * How long the database may send nothing while a statement runs, in milliseconds. After that, Refold asks it over another connection. If
   * the server is still working on the statement, it continues, however long it takes. In all other cases the connection is closed and
   * replaced, and the statement fails.
   * @default 5000
   */
  readonly answerTimeout?: number;
}

/** The options, checked and complete. */
export type CheckedDatabase = Omit<Required<DatabaseOptions>, 'url' | 'readUrl'> & {
  readonly url: string | undefined;
  readonly readUrl: string | undefined;
};

/** Of `maxReadLag`, of the database and of each read store. */
export const readLagRule = { default: 1000, min: 10, max: 3_600_000 } as const satisfies NumberRule;

const numbers = {
  maxConnections: { default: 26, min: 1, max: 1000 },
  appendLockTimeout: { default: 5000, min: 1, max: 3_600_000 },
  answerTimeout: { default: 5000, min: 100, max: 3_600_000 },
  maxReadLag: readLagRule,
} as const satisfies Record<string, NumberRule>;

export const databaseRules = {
  url: { kind: 'url', also: 'DATABASE_URL' },
  readUrl: { kind: 'url' },
  readSchema: { kind: 'text' },
  notifications: { kind: 'boolean' },
  prepare: { kind: 'boolean' },
  ...numbers,
} as const satisfies Record<keyof DatabaseOptions, OptionRule>;

/** @throws RefoldError `INVALID_CONFIG` */
export function checkDatabase(database: DatabaseOptions): CheckedDatabase {
  refuseUnknown('database', database, Object.keys(databaseRules));
  const { url, readUrl, readSchema = 'read_models', notifications = true, prepare = true } = database;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(readSchema) || readSchema === 'refold' || readSchema.startsWith('pg_'))
    throw invalidConfig(
      `database.readSchema '${readSchema}' can't hold read tables; use a name such as 'read_models'.`,
    );
  if (url !== undefined) checkDatabaseUrl('database.url', url);
  checkReplica('database', database);
  return Object.freeze({
    url,
    readUrl,
    readSchema,
    notifications: checkBoolean('database.notifications', notifications),
    prepare: checkBoolean('database.prepare', prepare),
    ...checkNumbers('database', database, numbers),
  });
}

/** Checks the options of a replica, except for the number. @throws RefoldError `INVALID_CONFIG` */
export function checkReplica(
  subject: string,
  { readUrl, maxReadLag }: Pick<DatabaseOptions, 'readUrl' | 'maxReadLag'>,
): void {
  if (readUrl !== undefined) checkDatabaseUrl(`${subject}.readUrl`, readUrl);
  else if (maxReadLag !== undefined)
    throw invalidConfig(`${subject}.maxReadLag is for a replica; name it with ${subject}.readUrl, or leave both out.`);
}

/** Checks the format of a URL. The message never contains the URL, because it may hold a password. @throws RefoldError `INVALID_CONFIG` */
export function checkDatabaseUrl(source: string, url: string): void {
  if (!/^postgres(ql)?:\/\//.test(url))
    throw invalidConfig(`${source} is not a PostgreSQL URL; it starts with 'postgres://'.`);
  if (!parseHostList(url))
    throw invalidConfig(
      `${source} can't be read. Write it as 'postgres://user:password@host:port/database', with percent signs for what is special in the password; ` +
        "several hosts as 'host1:port,host2:port', and 'target_session_attrs' as any, read-write, read-only, primary, standby or prefer-standby.",
    );
}
