import type { ExecutionResult } from 'graphql';
import { stoppedBeforeAnswer } from '../requests/unknown-outcome.ts';

/** The queries and mutations of one WebSocket, from their arrival until they are answered. */
export class OwedAnswers {
  /** By their ids, and how one that runs is answered in place of its result. */
  readonly #owed = new Map<string, ((result: ExecutionResult) => void) | undefined>();
  #onNone: (() => void) | undefined;

  /** From now on the operation is owed an answer. */
  begin(id: string): void {
    this.#owed.set(id, undefined);
  }

  /** It is answered, or is no operation with one answer. */
  end(id: string): void {
    this.#owed.delete(id);
    if (this.#owed.size === 0) this.#onNone?.();
  }

  /** What the operation gives; `OUTCOME_UNKNOWN` where the process stops waiting for it before. */
  outcomeOf(id: string, run: () => Promise<ExecutionResult>): Promise<ExecutionResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ExecutionResult>();
    this.#owed.set(id, resolve);
    run().then(resolve, reject);
    return promise;
  }

  /** Waits for none of them any longer. */
  giveUp(): void {
    for (const resolve of this.#owed.values()) resolve?.({ errors: [stoppedBeforeAnswer()] });
  }

  /** Resolves when none is owed any more. */
  async none(): Promise<void> {
    if (this.#owed.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onNone = resolve;
    await promise;
  }
}
