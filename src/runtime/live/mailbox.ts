import type { LiveMessages } from '../../schema/contract/live-messages.ts';

export interface MailboxOptions<T> {
  /** Called once, with the first pull, or for whoever listens. */
  start(): void;
  /** The next message; undefined while there is none. */
  take(): T | undefined;
  /** Called once, at the end, whoever brought it about; not where nothing was ever asked for. */
  stop(): void;
}

interface Pull<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

/**
 * What a subscriber pulls or takes from. It holds no messages: each is made when it is asked for, from the newest state.
 * A class, since there is one for each of many thousand subscribers.
 */
export class Mailbox<T> implements LiveMessages<T> {
  readonly #options: MailboxOptions<T>;
  #pulls: Pull<T>[] | undefined;
  #onNews: (() => void) | undefined;
  #state: 'new' | 'open' | 'ended' = 'new';
  #failure: { readonly error: unknown } | undefined;

  constructor(options: MailboxOptions<T>) {
    this.#options = options;
  }

  listen(onNews: () => void): void {
    this.#onNews = onNews;
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
    // Pulls are answered in their order.
    this.#pulls ??= [];
    const message = this.#pulls.length === 0 ? this.#options.take() : undefined;
    if (message !== undefined) return Promise.resolve({ done: false, value: message });
    return new Promise((resolve, reject) => this.#pulls?.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#failure = undefined;
    this.#onNews = undefined;
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

  /** Says that there may be a message. */
  wake(): void {
    if (this.#state !== 'open') return;
    if (this.#onNews) {
      this.#onNews();
      return;
    }
    while (this.#pulls && this.#pulls.length > 0) {
      const message = this.#options.take();
      if (message === undefined) return;
      this.#pulls.shift()?.resolve({ done: false, value: message });
    }
  }

  /** Ends the messages: whoever asks next is told the error, and later that they are over. */
  fail(error: unknown): void {
    if (this.#state === 'ended') return;
    const pull = this.#pulls?.shift();
    if (pull) pull.reject(error);
    else this.#failure = { error };
    this.end();
  }

  /** Ends the messages in peace. */
  end(): void {
    const was = this.#state;
    this.#state = 'ended';
    if (was === 'open') this.#options.stop();
    for (const pull of this.#pulls?.splice(0) ?? []) pull.resolve({ done: true, value: undefined });
    if (was === 'open') this.#onNews?.();
  }

  #begin(): void {
    if (this.#state !== 'new') return;
    this.#state = 'open';
    this.#options.start();
  }
}
