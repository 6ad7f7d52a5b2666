import type { refoldCodes } from './error-codes.ts';
import { errorOf, storedText } from './thrown.ts';

/** Stable codes of every error that Refold throws. Decide by code or `instanceof`, never by message text. See docs/errors.md. */
export type RefoldErrorCode = keyof typeof refoldCodes;

/**
 * The one error family of Refold. `fields` holds what a program needs to act on the error (names, versions, positions). The message says
 * what was expected, what was found and what to do. Message and cause can always be stored and logged, whatever the application has thrown.
 */
export class RefoldError<Code extends RefoldErrorCode = RefoldErrorCode> extends Error {
  override readonly name: string = 'RefoldError';
  readonly code: Code;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: Code, message: string, fields: Record<string, unknown> = {}, options?: { cause?: unknown }) {
    super(
      storedText(message),
      options && { ...options, ...(options.cause === undefined ? {} : { cause: errorOf(options.cause) }) },
    );
    this.code = code;
    this.fields = fields;
  }
}

/** The stream was not at the expected version. Nothing of the append was written. */
export class ConcurrencyConflict extends RefoldError<'CONCURRENCY_CONFLICT'> {
  override readonly name = 'ConcurrencyConflict';
  readonly expected: number | 'no-stream' | 'stream-exists';
  /** The version found; 0 if the stream does not exist. */
  readonly actual: number;

  constructor(conflict: {
    family: string;
    streamId: string;
    expected: number | 'no-stream' | 'stream-exists';
    actual: number;
  }) {
    const { family, streamId, expected, actual } = conflict;
    super(
      'CONCURRENCY_CONFLICT',
      `Stream '${streamId}' of ${family}: expected ${describeVersion(expected)}, found ${describeVersion(actual)}. Read the stream again and decide again.`,
      { ...conflict },
    );
    this.expected = expected;
    this.actual = actual;
  }
}

function describeVersion(version: number | 'no-stream' | 'stream-exists'): string {
  if (version === 'no-stream' || version === 0) return 'no stream';
  if (version === 'stream-exists') return 'an existing stream';
  return `version ${version}`;
}

/** Thrown by `decide` to refuse a command. The message and `details` reach the client; nothing is written. */
export class CommandRejected extends RefoldError<'COMMAND_REJECTED'> {
  override readonly name = 'CommandRejected';

  constructor(reason: string, details: Record<string, unknown> = {}) {
    super('COMMAND_REJECTED', reason, details);
  }
}

/** One problem of an input. `path` is the path to the invalid value. */
export interface InputIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** An input or payload did not match its schema. Nothing was written. */
export class InvalidInput extends RefoldError<'BAD_USER_INPUT' | 'INVALID_PAYLOAD'> {
  override readonly name = 'InvalidInput';
  readonly issues: readonly InputIssue[];

  constructor(code: 'BAD_USER_INPUT' | 'INVALID_PAYLOAD', subject: string, issues: readonly InputIssue[]) {
    const list = issues.map((issue) => `${issue.path.join('.') || '(root)'}: ${issue.message}`).join('; ');
    super(code, `${subject} is not valid: ${list}`, { issues });
    this.issues = issues;
  }
}

/** A declaration (events, projection, command) that cannot work. It is reported before anything connects. */
export function invalidDeclaration(subject: string, problem: string): RefoldError<'INVALID_DECLARATION'> {
  return new RefoldError('INVALID_DECLARATION', `${subject}: ${problem}`, { subject });
}
