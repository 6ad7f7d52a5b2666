import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import { OnSkipFailed } from '../../projections/fold/on-skip.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { pauseBeforeRetry } from '../../projections/projection/retry-rules.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { recordRetry } from '../../store/processors/retries.ts';
import { AmbiguousOrder, isRowRefusal, isSqlRowRefusal, refusalOf } from '../../store/tables/refused-rows.ts';

export interface EventRetriesOptions {
  readonly db: Database;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  readonly logger: Logger;
}

/** Whether an event is the reason of an error: its fold failed, the database refuses its rows, or the hook for it failed. */
export function isEventFailure(error: unknown): boolean {
  return isRowRefusal(error) || isEvolveFailure(error) || error instanceof OnSkipFailed;
}

/** Like {@link isEventFailure}, for `evolveSql`: the database may also refuse the nulls of its rows. */
export function isSqlEventFailure(projection: Projection, error: unknown): boolean {
  return isEventFailure(error) || isSqlRowRefusal(projection, error);
}

/** The retries that `onError` declares, before its policy applies to an event. */
export class EventRetries {
  readonly #options: EventRetriesOptions;
  readonly #interrupted = new AbortController();

  constructor(options: EventRetriesOptions) {
    this.#options = options;
  }

  /** Whether a declared rule tries an event again after this error. */
  appliesTo(error: unknown): boolean {
    return this.#pauseAfter(error, 1) !== undefined;
  }

  /**
   * Does the work of one event, again after each pause that the rules allow.
   *
   * @param options.failed the error of a first attempt that was already made
   * @param options.only errors of other kinds are not retried
   * @throws the last error
   */
  async run<T>(
    position: bigint,
    work: () => Promise<T>,
    { failed, only = () => true }: { readonly failed?: unknown; readonly only?: (error: unknown) => boolean } = {},
  ): Promise<T> {
    let error = failed;
    for (let attempts = failed === undefined ? 0 : 1; ; attempts++) {
      if (attempts > 0) await this.#waitOrThrow(position, error, attempts, only);
      try {
        return await work();
      } catch (again) {
        error = again;
      }
    }
  }

  /**
   * The error to end a transaction with in which an event failed that would be tried again: locks are not held during a pause. The processor
   * starts again, and tries the event outside of it.
   */
  outside(error: unknown): unknown {
    const { id, name, version } = this.#options.projection;
    if (!this.appliesTo(error)) return error;
    return new RefoldError('PROCESSOR_FENCED', `${id}: one of its last events is tried again first.`, {
      name,
      version,
    });
  }

  /** Ends a pause. The event stays unfolded, for the next owner. */
  interrupt(): void {
    this.#interrupted.abort();
  }

  async #waitOrThrow(
    position: bigint,
    error: unknown,
    attempts: number,
    only: (error: unknown) => boolean,
  ): Promise<void> {
    const wait = only(error) ? this.#pauseAfter(error, attempts) : undefined;
    if (wait === undefined) throw error;
    const { db, projection, claim, logger } = this.#options;
    const { id, name, version } = projection;
    const ms = Math.round(wait);
    const message = this.#describe(position, error);
    await recordRetry(db, claim, { position: position.toString(), attempts, message }, ms);
    logger.warn(
      { projection: id, position: position.toString(), attempt: attempts },
      `${message} Trying again in ${ms} ms.`,
    );
    await pause(wait, undefined, { signal: this.#interrupted.signal }).catch(() => {
      const stops = `${id}: stops while it waits to try the event at position ${position} again.`;
      throw new RefoldError('PROCESSOR_FENCED', stops, { name, version });
    });
  }

  #pauseAfter(error: unknown, attempts: number): number | undefined {
    const { projection } = this.#options;
    const { retries } = projection.onError;
    const isFailure = projection.sqlFold ? isSqlEventFailure(projection, error) : isEventFailure(error);
    if (retries.length === 0 || !isFailure || error instanceof AmbiguousOrder) return undefined;
    return pauseBeforeRetry(retries, error, attempts, Math.random());
  }

  /** Without values of rows. */
  #describe(position: bigint, error: unknown): string {
    const { projection } = this.#options;
    if (isEvolveFailure(error) || error instanceof OnSkipFailed) return error.message;
    const { reason } = refusalOf(projection, error);
    return `${projection.id}: the database refuses what the event at position ${position} leads to: ${reason}`;
  }
}
