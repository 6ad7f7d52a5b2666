import { randomUUID } from 'node:crypto';
import { GraphQLError, type GraphQLErrorExtensions } from 'graphql';
import type { Logger } from 'pino';
import type { ClientErrorCode } from '../../error-codes.ts';
import { ConcurrencyConflict, InvalidInput, RefoldError, type RefoldErrorCode } from '../../errors.ts';
import { isVersionUnknown } from '../../events/read-payload.ts';
import { isOutage, isServerFault, isTableError } from '../../store/postgres/database-errors.ts';
import { storedJson, withoutTraps } from '../../thrown.ts';
import { restatedError } from './restated-error.ts';
import { addWritten } from './written-before.ts';

type PublicExtensions = (error: RefoldError) => Record<string, unknown>;

/** The extensions that clients get for these errors, in addition to message and code. All other errors are masked. */
const publicFields: Readonly<Record<Exclude<ClientErrorCode, 'AUTHENTICATION_UNAVAILABLE'>, PublicExtensions>> = {
  BAD_USER_INPUT: (error) => (error instanceof InvalidInput ? { issues: error.issues } : {}),
  // `decide` passed the reason as the message.
  COMMAND_REJECTED: ({ message, fields }) => ({ reason: message, details: fields }),
  CONCURRENCY_CONFLICT: (error) =>
    error instanceof ConcurrencyConflict ? { expected: error.expected, actual: error.actual } : {},
  // Clients learn that a retry makes sense, but not who holds the lock.
  STREAM_LOCKED: ({ fields: { waitedMs } }) => ({ waitedMs, retriable: true }),
  UNIQUE_CHECK_UNAVAILABLE: ({ fields: { waitedMs } }) => ({ waitedMs, retriable: true }),
  TEXT_TOO_LONG: ({ fields: { column, bytes, maxBytes } }) => ({ column, bytes, maxBytes }),
  DATABASE_UNAVAILABLE: () => ({ retriable: true }),
  // Clients do not learn which event it is: they may not read it.
  PAYLOAD_VERSION_UNKNOWN: () => ({ retriable: true }),
  OUTCOME_UNKNOWN: () => ({}),
  PROJECTION_NOT_READY: ({ fields }) => fields,
  POSITION_TIMEOUT: ({ fields }) => fields,
  ROW_HELD: ({ fields }) => fields,
  HISTORY_CHANGED: ({ fields }) => fields,
  PROJECTION_SWITCHED: ({ fields }) => fields,
  QUERY_TOO_COMPLEX: () => ({}),
  ANSWER_TOO_LARGE: () => ({}),
  UNAUTHENTICATED: () => ({}),
  FORBIDDEN: () => ({}),
};

const publicExtensions: Readonly<Partial<Record<RefoldErrorCode, PublicExtensions>>> = publicFields;

/** Public messages for errors whose own message is for operators: clients must not learn what holds a stream. */
const publicMessages: Readonly<Partial<Record<RefoldErrorCode, string>>> = {
  STREAM_LOCKED: 'The stream is locked by another writer. Nothing was written. Retry.',
  UNIQUE_CHECK_UNAVAILABLE: 'Unique values can not be checked at the moment. Nothing was written. Retry.',
  DATABASE_UNAVAILABLE: 'The database is not available. Nothing was done: try again.',
  PAYLOAD_VERSION_UNKNOWN:
    'A newer release has written data that this server can not read yet. Nothing was done: try again.',
  OUTCOME_UNKNOWN:
    'The database did not answer. The command may have been written: send it again with the same idempotency key.',
};

export interface ErrorMaskOptions {
  readonly logger: Logger;
  /** Whether messages may suggest names of the schema. */
  readonly hints: boolean;
  /** Called if a statement failed because of a table that it reads. */
  onTableError?(): void;
}

/** Converts errors into what may leave the process: expected ones with their code, the others masked and logged with an id. */
export function createErrorMask({ logger, hints, onTableError }: ErrorMaskOptions): (error: unknown) => GraphQLError {
  return (thrown) => {
    const error = withoutTraps(thrown);
    return addWritten(error, publicError(error));
  };

  function publicError(error: unknown): GraphQLError {
    const located = error instanceof GraphQLError ? error : undefined;
    const cause = rootCause(error);
    if (cause instanceof RefoldError) {
      const taken = takenColumn(cause);
      if (taken !== undefined) {
        const reason = taken === null ? 'A value is already taken.' : `'${taken}' is already taken.`;
        const details = taken === null ? {} : { column: taken };
        return restatedError(located, reason, { code: 'COMMAND_REJECTED', reason, details });
      }
      if (isServerFault(cause)) {
        logger.error({ err: cause, path: located?.path }, 'an operation failed');
        const { DATABASE_UNAVAILABLE: message } = publicMessages;
        const extensions = { code: 'DATABASE_UNAVAILABLE', ...publicFields.DATABASE_UNAVAILABLE(cause) };
        return restatedError(located, String(message), { ...extensions, ...httpOf(cause, located) });
      }
      const extensions = publicExtensions[(cause as RefoldError).code]?.(cause); // instanceof yields the widest type
      if (extensions) {
        const message = publicMessages[(cause as RefoldError).code] ?? cause.message; // as above
        if (isUnavailable(cause)) logger.warn({ err: cause, path: located?.path }, 'an operation failed');
        return restatedError(located, message, { code: cause.code, ...plain(extensions), ...httpOf(cause, located) });
      }
    }
    if (located && cause instanceof GraphQLError) {
      // A GraphQL error has a message for the client. An error before the resolvers has no path; an error of a scalar has its own code.
      const code = located.extensions.code ?? cause.extensions.code ?? (located.path ? undefined : 'BAD_USER_INPUT');
      if (code !== undefined) {
        const message = hints ? located.message : withoutHint(located.message);
        return restatedError(located, message, { ...located.extensions, code });
      }
    }
    const errorId = randomUUID();
    logger.error({ err: cause, errorId, path: located?.path }, 'an operation failed');
    if (isTableError(cause)) {
      onTableError?.();
      const message = `A table that this operation needs can't be read. Try again later. Details are in the server log under ${errorId}.`;
      return restatedError(located, message, { code: 'PROJECTION_NOT_READY', errorId });
    }
    return restatedError(located, `Something went wrong. Details are in the server log under ${errorId}.`, {
      code: 'INTERNAL_SERVER_ERROR',
      errorId,
      // For yoga: a result without data gets status 500. It is removed before it is sent.
      unexpected: true,
    });
  }
}

/**
 * The HTTP status of an error that refuses the whole operation before any field: 400 like invalid variables, or 503 if this process can't
 * answer at present.
 */
function httpOf(cause: RefoldError, located: GraphQLError | undefined): Pick<GraphQLErrorExtensions, 'http'> {
  const { http } = located?.extensions ?? {};
  if (http !== undefined) return { http };
  if (located?.path) return {};
  if (isUnavailable(cause)) return { http: { status: 503 } };
  return cause.code === 'BAD_USER_INPUT' ? { http: { status: 400 } } : {};
}

/** Whether another attempt, perhaps at another process, can succeed. */
export function isUnavailable(error: unknown): boolean {
  return isOutage(error) || isServerFault(error) || isVersionUnknown(error);
}

/** Removes suggestions of names in the schema. */
export function withoutHint(message: string): string {
  return message.replace(/ Did you mean .*$/s, '');
}

/**
 * The column with a duplicate unique value, if a command failed because its row would commit with it. Null if the column is unknown.
 * Clients must not learn which row has the value.
 */
function takenColumn({ code, fields }: RefoldError): string | null | undefined {
  if (code !== 'EVOLVE_FAILED' || fields.taken !== true) return undefined;
  return typeof fields.column === 'string' ? fields.column : null;
}

function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}

/** Converts positions and bigints to decimal strings. */
function plain(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return JSON.parse(storedJson(fields));
}
