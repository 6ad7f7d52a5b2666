import type { ExecutionResult } from 'graphql';
import type { PreparedOperation } from '../operations/run-operation.ts';
import { stoppedBeforeAnswer } from '../requests/unknown-outcome.ts';

/** The queries and mutations of one WebSocket, from their arrival until they are answered. */
export class OwedAnswers {
  /** By their ids, and how one that runs is answered when the process stops waiting for its result. */
  readonly #owed = new Map<string, (() => void) | undefined>();
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

  /** The result of the operation; an error if the process stops waiting for it, which is `OUTCOME_UNKNOWN` for a mutation. */
  outcomeOf(id: string, { run, isMutation }: Pick<PreparedOperation, 'run' | 'isMutation'>): Promise<ExecutionResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ExecutionResult>();
    this.#owed.set(id, () => resolve({ errors: [stoppedBeforeAnswer(isMutation)] }));
    run().then(resolve, reject);
    return promise;
  }

  /** Waits for none of them any longer. */
  giveUp(): void {
    for (const giveUp of this.#owed.values()) giveUp?.();
  }

  /** Resolves when none is owed any more. */
  async none(): Promise<void> {
    if (this.#owed.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onNone = resolve;
    await promise;
  }
}
