import type { ExecutionResult } from 'graphql';
import type { Answer } from './answer.ts';
import type { ClientSubscription, Sink } from './subscription.ts';

/** Returns the answers of a subscription as an async iterator. */
export function pulled(subscription: ClientSubscription): AsyncIterableIterator<ExecutionResult> {
  return new PulledAnswers(subscription);
}

const done = { done: true, value: undefined } as const;

class PulledAnswers implements AsyncIterableIterator<ExecutionResult>, Sink {
  readonly #subscription: ClientSubscription;
  readonly #pulls: ((result: IteratorResult<ExecutionResult>) => void)[] = [];
  #state: 'new' | 'open' | 'ended' = 'new';

  constructor(subscription: ClientSubscription) {
    this.#subscription = subscription;
  }

  get isReady(): boolean {
    return this.#pulls.length > 0;
  }

  send({ result }: Answer): void {
    this.#pulls.shift()?.({ done: false, value: result });
  }

  complete(): void {
    this.#state = 'ended';
    for (const resolve of this.#pulls.splice(0)) resolve(done);
  }

  next(): Promise<IteratorResult<ExecutionResult>> {
    if (this.#state === 'ended') return Promise.resolve(done);
    return new Promise((resolve) => {
      this.#pulls.push(resolve);
      if (this.#state === 'new') this.#subscription.serve(this);
      else this.#subscription.wake();
      this.#state = 'open';
    });
  }

  async return(): Promise<IteratorResult<ExecutionResult>> {
    this.#subscription.leave();
    this.complete();
    return done;
  }

  async throw(error: unknown): Promise<IteratorResult<ExecutionResult>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
