import { randomUUID } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import { ConcurrencyConflict, InvalidInput, RefoldError, type RefoldErrorCode } from '../errors.ts';
import { restatedError } from './restated-error.ts';

/** What clients are told of these errors beside message and code; all other errors are none of their business. */
const told: Readonly<Partial<Record<RefoldErrorCode, (error: RefoldError) => Record<string, unknown>>>> = {
  BAD_USER_INPUT: (error) => (error instanceof InvalidInput ? { issues: error.issues } : {}),
  // `decide` gave the message as the reason.
  COMMAND_REJECTED: ({ message, fields }) => ({ reason: message, details: fields }),
  CONCURRENCY_CONFLICT: (error) =>
    error instanceof ConcurrencyConflict ? { expected: error.expected, actual: error.actual } : {},
  PROJECTION_NOT_READY: ({ fields }) => fields,
  POSITION_TIMEOUT: ({ fields }) => fields,
  PROJECTION_SWITCHED: ({ fields }) => fields,
  QUERY_TOO_COMPLEX: () => ({}),
};

/** Turns errors into what may leave the process: expected ones with their code, the rest masked, and logged under an id. */
export function createErrorMask(logger: Logger): (error: unknown) => GraphQLError {
  return (error) => {
    const located = error instanceof GraphQLError ? error : undefined;
    const cause = rootCause(error);
    if (cause instanceof RefoldError) {
      const extensions = told[(cause as RefoldError).code]?.(cause); // instanceof gives the widest type
      if (extensions) return restatedError(located, cause.message, { code: cause.code, ...plain(extensions) });
    }
    if (located && cause instanceof GraphQLError) {
      // GraphQL itself worded it for the client. What fails before the resolvers has no path; what a scalar refuses has its code.
      const code = located.extensions.code ?? cause.extensions.code ?? (located.path ? undefined : 'BAD_USER_INPUT');
      if (code !== undefined) return restatedError(located, located.message, { ...located.extensions, code });
    }
    const errorId = randomUUID();
    logger.error({ err: cause, errorId, path: located?.path }, 'an operation failed');
    return restatedError(located, `Something went wrong here. The log tells more under ${errorId}.`, {
      code: 'INTERNAL_SERVER_ERROR',
      errorId,
      // For yoga: an answer without data has status 500. It goes no further.
      unexpected: true,
    });
  };
}

function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}

/** Positions and bigints as decimal strings. */
function plain(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? value.toString() : value)));
}
