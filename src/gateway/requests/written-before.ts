import { GraphQLError } from 'graphql';
import { laterToken, type PositionToken, tokenText } from '../../events/position-token.ts';
import { restatedError } from './restated-error.ts';

/** What the commands of a mutation have written, by root field. */
export interface WrittenFields {
  /** From now on, commands belong to this field: a mutation executes its fields one after the other. */
  begin(field: string): void;
  note(token: PositionToken): void;
  /** Returns whether something was written. If so, the errors of the result will say so. */
  mark(errors: readonly GraphQLError[]): boolean;
}

interface Written {
  readonly position: string;
  /** Whether the error's own field has written, and not only another one. */
  readonly isOwn: boolean;
}

// Not in the extensions: an application may throw the same error, or a frozen one, many times.
const marked = new WeakMap<GraphQLError, Written>();

export function createWrittenFields(): WrittenFields {
  const written = new Map<string, PositionToken>();
  let current = '';
  return {
    begin(field) {
      current = field;
    },
    note(token) {
      const before = written.get(current);
      written.set(current, before ? laterToken(before, token) : token);
    },
    mark(errors) {
      const [first, ...others] = written.values();
      if (!first) return false;
      const last = others.reduce(laterToken, first);
      for (const error of errors) {
        const own = written.get(String(error.path?.[0]));
        marked.set(error, { position: tokenText(own ?? last), isOwn: own !== undefined });
      }
      return true;
    },
  };
}

/**
 * Adds to an error that the mutation has written before: nobody may conclude that nothing was done, and send it again. `publicError` is what the
 * client would get otherwise.
 */
export function addWritten(error: unknown, publicError: GraphQLError): GraphQLError {
  const written = error instanceof GraphQLError ? marked.get(error) : undefined;
  if (!written) return publicError;
  const { position, isOwn } = written;
  const { message } = publicError;
  const { retriable, unexpected: _, ...extensions } = publicError.extensions;
  const code = String(extensions.code);
  const meansUndone = retriable === true || undone.has(code);
  // Its own command was not done. Only the operation as a whole must not be sent again.
  if (!isOwn)
    return meansUndone
      ? restatedError(publicError, message, { ...publicError.extensions, operationWritten: position })
      : publicError;
  if (!meansUndone) {
    const restated =
      code === 'OUTCOME_UNKNOWN'
        ? `A command was written, at position ${position}. Then the database did not answer another one of this field, which may have been written, too. Do not send them again before you have read their results.`
        : `${message} The command was written, at position ${position}.`;
    return restatedError(publicError, restated, { ...extensions, written: position });
  }
  const restated = `The command was written, at position ${position}, and what followed failed: ${reasons[code] ?? code}. Do not send it again; read its result later.`;
  return restatedError(publicError, restated, { code: 'PARTLY_DONE', written: position, reason: code });
}

/** Codes after which clients may send an operation again, because nothing was done. */
const undone: ReadonlySet<string> = new Set([
  'CONCURRENCY_CONFLICT',
  'RATE_LIMITED',
  'AUTHENTICATION_UNAVAILABLE',
  'PROJECTION_NOT_READY',
]);

const reasons: Readonly<Record<string, string>> = {
  DATABASE_UNAVAILABLE: 'the database is not available',
  PAYLOAD_VERSION_UNKNOWN: 'a newer release has written data that this server can not read yet',
  STREAM_LOCKED: 'a stream is locked by another writer',
  CONCURRENCY_CONFLICT: 'another command was faster',
  PROJECTION_NOT_READY: 'a read model can not be read at present',
};
