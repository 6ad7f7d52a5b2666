import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import { pauseBeforeRetry } from '../../projections/projection/retry-rules.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';

/** Reports that work begins to wait for the database, or continues. */
export type OutageNote =
  | { readonly kind: 'waiting'; readonly error: RefoldError; readonly forSeconds: number }
  | { readonly kind: 'going on'; readonly afterSeconds: number };

export interface ThroughOutagesOptions {
  /** For how long one outage may last, in milliseconds. */
  readonly timeoutMs: number;
  /** Ends the waiting; the error of the outage is thrown then. */
  readonly signal?: AbortSignal | undefined;
  onOutage(note: OutageNote): void;
}

/**
 * Runs work that is safe to repeat, and repeats it while the database is unavailable or its answer was lost: first after 0.2 seconds, then after
 * longer pauses of up to 30 seconds.
 */
export async function throughOutages<T>(work: () => Promise<T>, options: ThroughOutagesOptions): Promise<T> {
  const { timeoutMs, signal, onOutage } = options;
  const start = performance.now();
  for (let attempts = 1; ; attempts++) {
    try {
      const done = await work();
      if (attempts > 1) onOutage({ kind: 'going on', afterSeconds: (performance.now() - start) / 1000 });
      return done;
    } catch (error) {
      if (!(error instanceof RefoldError) || !isOutage(error)) throw error;
      const left = start + timeoutMs - performance.now();
      if (left <= 0) throw waitedInVain(error, timeoutMs);
      if (signal?.aborted) throw error;
      if (attempts === 1) onOutage({ kind: 'waiting', error, forSeconds: timeoutMs / 1000 });
      const wait = pauseBeforeRetry([], error, attempts, Math.random()) ?? 0; // it has a rule for outages
      await pause(Math.min(wait, left), undefined, { signal }).catch(() => {}); // only the signal rejects
    }
  }
}

function waitedInVain(cause: RefoldError, timeoutMs: number): RefoldError {
  const message = `The database was not available for ${timeoutMs / 1000} s. ${cause.message}`;
  return new RefoldError(cause.code, message, { ...cause.fields }, { cause });
}
