import type { ExecutionResult } from 'graphql';
import type { PreparedOperation } from '../operations/run-operation.ts';
import { stoppedBeforeAnswer } from '../requests/unknown-outcome.ts';

/** The queries and mutations of one WebSocket that have no response yet. */
export class PendingOperations {
  /** By id, with the function that responds in place of a running one. */
  readonly #pending = new Map<string, (() => void) | undefined>();
  #onNone: (() => void) | undefined;

  /** The operation is pending from now on. */
  begin(id: string): void {
    this.#pending.set(id, undefined);
  }

  /** The operation has its response, or is a subscription. */
  end(id: string): void {
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#onNone?.();
  }

  /** Returns the result of the operation. If the process stops before, it is an error: for a mutation `OUTCOME_UNKNOWN`. */
  outcomeOf(id: string, { run, isMutation }: Pick<PreparedOperation, 'run' | 'isMutation'>): Promise<ExecutionResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ExecutionResult>();
    this.#pending.set(id, () => resolve({ errors: [stoppedBeforeAnswer(isMutation)] }));
    run().then(resolve, reject);
    return promise;
  }

  /** Responds to all that still run. */
  respondToAll(): void {
    for (const respond of this.#pending.values()) respond?.();
  }

  /** Resolves when none is pending. */
  async none(): Promise<void> {
    if (this.#pending.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onNone = resolve;
    await promise;
  }
}
