import { randomUUID } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import { RefoldError, type RefoldErrorCode } from '../../errors.ts';
import { databaseAddress, isRefusedValue, sqlStateOf } from '../../store/postgres/database-errors.ts';
import { errorInStore, type ReadStore } from '../../store/read-store.ts';
import { enumName } from '../schema/enum-values.ts';

// Their messages are for operators, who may see all of them.
const shown: readonly RefoldErrorCode[] = [
  'BAD_USER_INPUT',
  'UNKNOWN_EVENT_TYPE',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'INVALID_TRANSITION',
  'PREVIEW_OUTDATED',
  'PROJECTION_CHANGED',
  'QUERY_TOO_COMPLEX',
  'ANSWER_TOO_LARGE',
  'HISTORY_CHANGED',
  'PAYLOAD_VERSION_UNKNOWN',
  'DATABASE_UNAVAILABLE',
];

const statementTimeout = '57014';
const lockTimeout = '55P03';

/**
 * Converts errors into what the admin API answers: expected ones with their code and message, the others logged with an id.
 *
 * @param apart the read stores beside the log, which an error names if its database is one of theirs
 */
export function createAdminErrorMask(
  logger: Logger,
  apart: readonly Pick<ReadStore, 'name' | 'url'>[],
): (error: unknown) => GraphQLError {
  const stores = new Map(apart.map(({ name, url }) => [databaseAddress(url), name]));
  const named = (error: RefoldError) => {
    const store = stores.get(String(error.fields.address));
    return store === undefined ? error : errorInStore(store, error);
  };
  return (error) => {
    const located = error instanceof GraphQLError ? error : undefined;
    const root = rootCause(error);
    const cause = root instanceof RefoldError ? named(root) : root;
    const restated = (message: string, extensions: Record<string, unknown>) =>
      new GraphQLError(message, {
        ...(located?.nodes ? { nodes: located.nodes } : {}),
        ...(located?.path ? { path: located.path } : {}),
        extensions,
      });
    if (cause instanceof RefoldError) {
      const { code, message, fields } = cause as RefoldError; // instanceof yields the widest type
      const right = typeof fields.right === 'string' ? { right: enumName(fields.right) } : {};
      if (shown.includes(code)) return restated(message, { code, ...right });
      if (code === 'OUTCOME_UNKNOWN')
        return restated(
          'The connection to the database was lost while the action was committed, so it may be done. Look into the audit log before you repeat it.',
          { code },
        );
      if (isRefusedValue(cause)) return restated(refusedValue(cause), { code: 'BAD_USER_INPUT' });
      const sqlState = fields.sqlState ?? sqlStateOf(cause);
      if (sqlState === statementTimeout)
        return restated(
          'The database needed longer than gateway.statementTimeout. Ask for less, or use the command line.',
          {
            code: 'QUERY_TOO_COMPLEX',
          },
        );
      if (sqlState === lockTimeout)
        return restated(`A lock could not be taken in time, so nothing was done. Try again. ${message}`, {
          code: 'INVALID_TRANSITION',
        });
    }
    // Such as an error of the syntax, of the validation or of a scalar.
    if (located && !located.originalError)
      return restated(located.message, { code: 'BAD_USER_INPUT', ...located.extensions });
    if (cause instanceof GraphQLError) return restated(cause.message, { code: 'BAD_USER_INPUT', ...cause.extensions });
    const errorId = randomUUID();
    logger.error({ err: cause, errorId, path: located?.path }, 'an operation of the admin API failed');
    return restated(`Something went wrong. Details are in the server log under ${errorId}.`, {
      code: 'INTERNAL_SERVER_ERROR',
      errorId,
    });
  };
}

/** All values of the statements of the admin API come from arguments, or were stored before. */
export function refusedValue({ message }: RefoldError): string {
  return `The database refuses a value of the arguments: ${message}.`;
}

function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}
