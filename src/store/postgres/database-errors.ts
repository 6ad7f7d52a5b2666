import pg from 'pg';
import { parseHostList } from '../../config/host-list.ts';
import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';
import { SilentConnection } from './answer-deadline.ts';
import { LargeAnswer } from './large-answer.ts';

/**
 * Translates every error of the driver to a RefoldError; nothing else does. `DATABASE_UNAVAILABLE`: no session could be opened, it was
 * lost, or the server currently accepts no writes. `DATABASE_ERROR` (with `sqlState`, `constraint`, `table`): the server refused a
 * statement. For a writing statement whose session was lost, see {@link unknownOutcome}.
 */
export function translateDatabaseError(error: unknown, url: string): RefoldError {
  if (error instanceof RefoldError) return error;
  const cause = firstOf(error);
  if (cause instanceof LargeAnswer) return new RefoldError('ANSWER_TOO_LARGE', cause.message);
  if (cause instanceof pg.DatabaseError && cause.routine === growsBuffer)
    return new RefoldError(
      'ANSWER_TOO_LARGE',
      'The answer is larger than a gigabyte, which is more than PostgreSQL makes of one statement. Ask for fewer rows or fields.',
    );
  const unreachable = whyUnreachable(cause);
  if (unreachable) {
    return new RefoldError(
      'DATABASE_UNAVAILABLE',
      `PostgreSQL at ${databaseAddress(url)}: ${unreachable}`,
      { address: databaseAddress(url), sqlState: codeOf(cause) },
      { cause },
    );
  }
  if (cause instanceof pg.DatabaseError) {
    const { code, constraint, table, column } = cause;
    if (code === historyChanged) return new RefoldError('HISTORY_CHANGED', cause.message, {}, { cause });
    if (code === unchecked) {
      const fields = { types: JSON.parse(cause.detail ?? '[]') };
      return new RefoldError('UNIQUE_CHECK_UNAVAILABLE', `${cause.message} ${cause.hint}`, fields, { cause });
    }
    // For a refused row, the detail quotes the row.
    const detail = /^2[23]/.test(code ?? '') ? undefined : cause.detail;
    const wayOut = serverFaults[code ?? ''];
    const message = `${cause.message}${detail === undefined ? '' : ` (${detail})`}${wayOut ? `. ${wayOut}` : ''}`;
    return new RefoldError('DATABASE_ERROR', message, { sqlState: code, constraint, table, column }, { cause });
  }
  return new RefoldError('DATABASE_ERROR', reasonOf(cause), {}, { cause });
}

// The function of the server that fails if a text outgrows its buffer. Its SQLSTATE, 54000, has other causes, too.
const growsBuffer = 'enlargeStringInfo';

/** What only an operator can repair, by SQLSTATE. The statement is refused, so nothing of it was written. */
const serverFaults: Readonly<Record<string, string>> = {
  '42501': 'Grant this privilege to the user that Refold connects as, or connect as another user.',
  XX001:
    'A page of the table is damaged: check the disk, and restore the database, or rebuild the read model that it is of.',
  XX002: 'The index is damaged: check the disk, and run `reindex` on it.',
  '58030': "The server can't read or write its files: check its disk.",
  // Raised by `refold.tag_writer`.
  RF004: "Run `select setval('refold.events_position_seq', (select max(position) from refold.events))`.",
};

/** Whether the server refused a statement for a reason that is not in the statement: a missing privilege, or damaged data. */
export function isServerFault(error: unknown): boolean {
  return Object.hasOwn(serverFaults, sqlStateOf(error) ?? '');
}

/** Raised by Refold's SQL functions if the log's history differs from what the caller expects. */
const historyChanged = 'RF001';

/** Raised by `refold.refuse_unchecked`. The detail is a JSON list of the event types that can't be appended. */
const unchecked = 'RF003';

/** Whether an error means that no session could be opened, that it was lost, or that it is unusable. */
export function isConnectionLoss(error: unknown): boolean {
  return error instanceof LargeAnswer || whyUnreachable(firstOf(error)) !== undefined;
}

/** Whether an answer was refused because of its bytes. */
export function isLargeAnswer(error: unknown): error is RefoldError {
  return error instanceof RefoldError && error.code === 'ANSWER_TOO_LARGE';
}

/** Whether the server refused a connection because it has none left. PgBouncer uses its own message for this. */
export function hasNoConnectionLeft(error: unknown): boolean {
  const code = codeOf(error);
  return code === '53300' || (code === '08P01' && poolerIsFull.test(error instanceof Error ? error.message : ''));
}

const poolerIsFull = /^no more connections allowed/;

/** Whether a translated error is an outage: the same call may succeed when the database is back. */
export function isOutage(error: unknown): boolean {
  return error instanceof RefoldError && (error.code === 'DATABASE_UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN');
}

/** Marks an error that occurred before anything was sent. */
export function nothingSent(error: RefoldError): RefoldError {
  if (error.code !== 'DATABASE_UNAVAILABLE') return error;
  return new RefoldError(error.code, error.message, { ...error.fields, sent: false }, { cause: error.cause });
}

/**
 * The error of a statement or a commit that writes. `OUTCOME_UNKNOWN` if the session was lost before the server answered, because the data
 * may be written. Other errors are returned unchanged: the server refused the statement, or it was never sent.
 */
export function unknownOutcome(error: unknown): unknown {
  if (!(error instanceof RefoldError) || error.code !== 'DATABASE_UNAVAILABLE' || error.fields.sent === false)
    return error;
  if (refusals.has(String(error.fields.sqlState))) return error;
  return new RefoldError(
    'OUTCOME_UNKNOWN',
    `${error.message} The data may have been written anyway. With an idempotency key it is safe to retry.`,
    { ...error.fields },
    { cause: error },
  );
}

// Errors after which nothing of the statement is written: the server accepts no writes, its disk is full, or it had rolled the transaction back.
const refusals: ReadonlySet<string> = new Set(['25006', '53100', '25P03']);

/** The SQLSTATE of a translated error, such as `'23505'`. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof RefoldError)) return undefined;
  const { sqlState } = error.fields;
  return typeof sqlState === 'string' ? sqlState : undefined;
}

/**
 * Whether a statement was refused because a table has changed: the table, a column or a type is missing, or a column was added that may not be
 * null.
 */
export function isTableError(error: unknown): boolean {
  return tableErrors.has(sqlStateOf(error) ?? '');
}

// undefined_table, undefined_column, undefined_function (for these types), datatype_mismatch; a prepared statement whose result type has
// changed; not_null_violation, of a column that was added; invalid_column_reference, of a key that was dropped.
const tableErrors: ReadonlySet<string> = new Set(['42P01', '42703', '42883', '42804', '0A000', '23502', '42P10']);

/**
 * Whether PostgreSQL would refuse the same statement again: because of its values (classes 22 and 23) or its text. Excludes errors of
 * prepared statements, of objects that another session just created, and of missing privileges.
 */
export function isRefusedForGood(error: unknown): boolean {
  const state = sqlStateOf(error) ?? '';
  return /^2[23]/.test(state) || refusedStatements.has(state);
}

// undefined_table, undefined_column, undefined_function, datatype_mismatch, cannot_coerce, syntax_error, invalid_column_reference (of on
// conflict).
const refusedStatements: ReadonlySet<string> = new Set(['42P01', '42703', '42883', '42804', '42846', '42601', '42P10']);

/** Whether PostgreSQL refused a value that it was given: class 22 (a NUL, half a surrogate pair in JSON, out of range), or too large for an index. */
export function isRefusedValue(error: unknown): error is RefoldError {
  return /^(22...|54000)$/.test(sqlStateOf(error) ?? '');
}

/** `host:port/database` of a connection URL. Safe for messages, because it contains no password. */
export function databaseAddress(url: string): string {
  const list = parseHostList(url);
  if (!list) return '(a connection URL that cannot be parsed)';
  const { pathname, searchParams } = new URL(list.url);
  const hosts = list.hosts.map(
    ({ host, port }) => `${host === '' ? (searchParams.get('host') ?? 'localhost') : host}:${port}`,
  );
  return `${hosts.join(',')}${pathname === '/' ? '' : pathname}`;
}

// Node tries each address of a host name. Its AggregateError holds one error per address, which all say the same.
function firstOf(error: unknown): unknown {
  return error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

const unreachableCodes: Readonly<Record<string, string>> = {
  ECONNREFUSED:
    'nothing listens there. Start the server, or correct host and port in its URL: DATABASE_URL, or that of a read store.',
  ENOTFOUND: 'the host name is unknown. Correct it in its URL: DATABASE_URL, or that of a read store.',
  EAI_AGAIN:
    'the host name could not be resolved. Check the name service, or the host in its URL: DATABASE_URL, or that of a read store.',
  ETIMEDOUT: 'the host does not answer. Check the network and its firewall.',
  EHOSTUNREACH: 'there is no route to the host. Check the network.',
  ENETUNREACH: 'there is no route to the host. Check the network.',
  ECONNRESET: 'the connection was reset. The server or something between ended it.',
  EPIPE: 'the connection was lost. The server or something between ended it.',
  ENOENT:
    'the socket does not exist. Start the server, or correct the path in its URL: DATABASE_URL, or that of a read store.',
  '28P01': 'user name or password was refused. Correct them in its URL: DATABASE_URL, or that of a read store.',
  '28000': 'the server does not admit this user. Check the user in its URL and the server’s pg_hba.conf.',
  '3D000':
    'the database does not exist. Create it, or correct its name in its URL: DATABASE_URL, or that of a read store.',
  '53300': 'the server has no connection left. Lower maxConnections, or raise the server’s max_connections.',
  '57P01': 'the session was ended by an administrator or by a shutdown of the server.',
  '57P02': 'the session was lost in a crash of the server.',
  '25P03': 'the server ended the session, because this process sent nothing within a transaction for too long.',
  '25006': 'the server takes no writes: it is a standby, or set to read only.',
  '53100': 'the disk of the server is full.',
  '57P03': 'the server is starting up or shutting down. Try again in a moment.',
};

// The driver's messages, without a code, when a session ends.
const lostMessages =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/;

// The coordinator of a Citus cluster has lost its session at a worker. The code is that of an internal error.
const lostWorker = /^failure on connection marked as essential/;

function whyUnreachable(error: unknown): string | undefined {
  if (error instanceof SilentConnection) return `${error.message}. Check the network and the server.`;
  const code = codeOf(error);
  if (code !== undefined && Object.hasOwn(unreachableCodes, code)) return unreachableCodes[code];
  // Of a new session, at any code.
  if (error instanceof pg.DatabaseError && error.routine === 'CheckMyDatabase')
    return `the server refuses connections to this database: ${error.message}. Allow them: \`alter database … allow_connections true\`, \`grant connect on database …\`.`;
  if (hasNoConnectionLeft(error))
    return 'the pooler has no connection left. Lower maxConnections, or raise its max_client_conn.';
  if (code?.startsWith('08') && code.length === 5)
    return 'the connection failed. The server or something between ended it.';
  if (error instanceof Error && error.message.startsWith('timeout exceeded')) {
    return 'no connection within the connect timeout. Check the network, or raise maxConnections if all are in use.';
  }
  if (error instanceof Error && lostWorker.test(error.message))
    return 'the connection to a worker of the cluster was lost. The worker or something between ended it.';
  if (error instanceof Error && lostMessages.test(error.message))
    return 'the connection was lost. The server or something between ended it.';
  return undefined;
}
