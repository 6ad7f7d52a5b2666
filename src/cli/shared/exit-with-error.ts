import { RefoldError } from '../../errors.ts';

/** Prints an error and exits with 1: expected errors by their message, others with all details. */
export function exitWithError(error: unknown): never {
  if (error instanceof RefoldError) console.error(`refold: ${error.message}`);
  else console.error(error);
  process.exit(1);
}

/** Wraps a command: its errors end it through {@link exitWithError}. */
export function withErrorReporting<A>(work: (context: A) => Promise<void>): (context: A) => Promise<void> {
  return (context) => work(context).catch(exitWithError);
}
