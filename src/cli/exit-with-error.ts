import { RefoldError } from '../errors.ts';

/** Ends the command: expected errors by their message, others with all that is known. */
export function exitWithError(error: unknown): never {
  if (error instanceof RefoldError) console.error(`refold: ${error.message}`);
  else console.error(error);
  process.exit(1);
}

/** Runs a command's work with errors told as {@link exitWithError} does. */
export function telling<A>(work: (context: A) => Promise<void>): (context: A) => Promise<void> {
  return (context) => work(context).catch(exitWithError);
}
