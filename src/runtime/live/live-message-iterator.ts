import type { LiveMessages } from '../../schema/contract/live-messages.ts';

export interface LiveMessageIteratorOptions<T> {
  /** Called once, at the first pull or when a listener is added. */
  start(): void;
  /** Returns the next message; undefined while there is none. */
  take(): T | undefined;
  /** Called once at the end, whatever ends it; not called if `start` never was. */
  stop(): void;
}

interface Pull<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

/**
 * The queue end that a subscriber pulls or takes from. It stores no messages: each message is created on demand from the newest state.
 * A class, to save memory: there is one for each of many thousand subscribers.
 */
export class LiveMessageIterator<T> implements LiveMessages<T> {
  readonly #options: LiveMessageIteratorOptions<T>;
  #pulls: Pull<T>[] | undefined;
  #onMessage: (() => void) | undefined;
  #state: 'new' | 'open' | 'ended' = 'new';
  #failure: { readonly error: unknown } | undefined;

  constructor(options: LiveMessageIteratorOptions<T>) {
    this.#options = options;
  }

  listen(onMessage: () => void): void {
    this.#onMessage = onMessage;
    this.#begin();
  }

  take(): T | undefined {
    if (this.#failure) {
      const { error } = this.#failure;
      this.#failure = undefined;
      throw error;
    }
    return this.#state === 'open' ? this.#options.take() : undefined;
  }

  get ended(): boolean {
    return this.#state === 'ended' && !this.#failure;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    this.#begin();
    if (this.#failure) {
      const { error } = this.#failure;
      this.#failure = undefined;
      return Promise.reject(error);
    }
    if (this.#state === 'ended') return Promise.resolve({ done: true, value: undefined });
    // Pulls are answered in order.
    this.#pulls ??= [];
    const message = this.#pulls.length === 0 ? this.#options.take() : undefined;
    if (message !== undefined) return Promise.resolve({ done: false, value: message });
    return new Promise((resolve, reject) => this.#pulls?.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#failure = undefined;
    this.#onMessage = undefined;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  throw(error: unknown): Promise<IteratorResult<T, undefined>> {
    this.#failure = undefined;
    this.end();
    return Promise.reject(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Signals that there may be a message. */
  wake(): void {
    if (this.#state !== 'open') return;
    if (this.#onMessage) {
      this.#onMessage();
      return;
    }
    while (this.#pulls && this.#pulls.length > 0) {
      const message = this.#options.take();
      if (message === undefined) return;
      this.#pulls.shift()?.resolve({ done: false, value: message });
    }
  }

  /** Ends the messages with an error. The next pull receives the error, later pulls receive the end. */
  fail(error: unknown): void {
    if (this.#state === 'ended') return;
    const pull = this.#pulls?.shift();
    if (pull) pull.reject(error);
    else this.#failure = { error };
    this.end();
  }

  /** Ends the messages without an error. */
  end(): void {
    const was = this.#state;
    this.#state = 'ended';
    if (was === 'open') this.#options.stop();
    for (const pull of this.#pulls?.splice(0) ?? []) pull.resolve({ done: true, value: undefined });
    if (was === 'open') this.#onMessage?.();
  }

  #begin(): void {
    if (this.#state !== 'new') return;
    this.#state = 'open';
    this.#options.start();
  }
}
