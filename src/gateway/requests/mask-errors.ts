import { randomUUID } from 'node:crypto';
import { GraphQLError, type GraphQLErrorExtensions } from 'graphql';
import type { Logger } from 'pino';
import { ConcurrencyConflict, InvalidInput, RefoldError, type RefoldErrorCode } from '../../errors.ts';
import { isOutage, isTableError } from '../../store/postgres/database-errors.ts';
import { restatedError } from './restated-error.ts';

/** What clients are told of these errors beside message and code; all other errors are none of their business. */
const told: Readonly<Partial<Record<RefoldErrorCode, (error: RefoldError) => Record<string, unknown>>>> = {
  BAD_USER_INPUT: (error) => (error instanceof InvalidInput ? { issues: error.issues } : {}),
  // `decide` gave the message as the reason.
  COMMAND_REJECTED: ({ message, fields }) => ({ reason: message, details: fields }),
  CONCURRENCY_CONFLICT: (error) =>
    error instanceof ConcurrencyConflict ? { expected: error.expected, actual: error.actual } : {},
  // Not who holds it, but that it is worth another try.
  STREAM_LOCKED: ({ fields: { waitedMs } }) => ({ waitedMs, retriable: true }),
  DATABASE_UNAVAILABLE: () => ({ retriable: true }),
  OUTCOME_UNKNOWN: () => ({}),
  PROJECTION_NOT_READY: ({ fields }) => fields,
  POSITION_TIMEOUT: ({ fields }) => fields,
  HISTORY_CHANGED: ({ fields }) => fields,
  PROJECTION_SWITCHED: ({ fields }) => fields,
  QUERY_TOO_COMPLEX: () => ({}),
  UNAUTHENTICATED: () => ({}),
  FORBIDDEN: () => ({}),
};

/** Where the message is for operators: what holds a stream, and how to find it, is none of the client's business. */
const retold: Readonly<Partial<Record<RefoldErrorCode, string>>> = {
  STREAM_LOCKED: 'Something else is writing here. Nothing was written: try again.',
  DATABASE_UNAVAILABLE: 'The database is not available. Nothing was done: try again.',
  OUTCOME_UNKNOWN:
    'The database did not answer. The command may have been written: send it again with the same idempotency key.',
};

export interface ErrorMaskOptions {
  readonly logger: Logger;
  /** Whether messages may guess at names of the schema that the client nearly wrote. */
  readonly hints: boolean;
  /** Told of statements that were refused for a table that they read. */
  onTableError?(): void;
}

/** Turns errors into what may leave the process: expected ones with their code, the rest masked, and logged under an id. */
export function createErrorMask({ logger, hints, onTableError }: ErrorMaskOptions): (error: unknown) => GraphQLError {
  return (error) => {
    const located = error instanceof GraphQLError ? error : undefined;
    const cause = rootCause(error);
    if (cause instanceof RefoldError) {
      const taken = takenColumn(cause);
      if (taken !== undefined) {
        const reason = taken === null ? 'A value is already taken.' : `'${taken}' is already taken.`;
        const details = taken === null ? {} : { column: taken };
        return restatedError(located, reason, { code: 'COMMAND_REJECTED', reason, details });
      }
      const extensions = told[(cause as RefoldError).code]?.(cause); // instanceof gives the widest type
      if (extensions) {
        const message = retold[(cause as RefoldError).code] ?? cause.message; // as above
        if (isOutage(cause)) logger.warn({ err: cause, path: located?.path }, 'an operation failed');
        return restatedError(located, message, { code: cause.code, ...plain(extensions), ...httpOf(cause, located) });
      }
    }
    if (located && cause instanceof GraphQLError) {
      // GraphQL itself worded it for the client. What fails before the resolvers has no path; what a scalar refuses has its code.
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
      const message = `A table that this needs can't be read. Ask again later. The log tells more under ${errorId}.`;
      return restatedError(located, message, { code: 'PROJECTION_NOT_READY', errorId });
    }
    return restatedError(located, `Something went wrong here. The log tells more under ${errorId}.`, {
      code: 'INTERNAL_SERVER_ERROR',
      errorId,
      // For yoga: an answer without data has status 500. It goes no further.
      unexpected: true,
    });
  };
}

/** Refused as a whole, before any field: for HTTP it is a bad request, as variables that don't fit are. Without the database it is no answer. */
function httpOf(cause: RefoldError, located: GraphQLError | undefined): Pick<GraphQLErrorExtensions, 'http'> {
  const { http } = located?.extensions ?? {};
  if (http !== undefined) return { http };
  if (located?.path) return {};
  if (isOutage(cause)) return { http: { status: 503 } };
  return cause.code === 'BAD_USER_INPUT' ? { http: { status: 400 } } : {};
}

/** Without what the schema has beside what was written. */
export function withoutHint(message: string): string {
  return message.replace(/ Did you mean .*$/s, '');
}

/**
 * The column of a unique value that a command could not take, since the row would commit with it; null where it is not known which. Who has the
 * value is none of the client's business.
 */
function takenColumn({ code, fields }: RefoldError): string | null | undefined {
  if (code !== 'EVOLVE_FAILED' || fields.taken !== true) return undefined;
  return typeof fields.column === 'string' ? fields.column : null;
}

function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}

/** Positions and bigints as decimal strings. */
function plain(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? value.toString() : value)));
}
