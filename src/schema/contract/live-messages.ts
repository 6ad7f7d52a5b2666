/**
 * Messages of a subscription that can be taken synchronously. Without a promise for each message, one change reaches ten thousand
 * subscribers in one turn. A consumer that calls `listen` must not call `next`.
 */
export interface LiveMessages<T> extends AsyncIterableIterator<T> {
  /** Starts. Calls `onNews` whenever there may be a message to take, and at the end. */
  listen(onMessage: () => void): void;
  /** Returns the next message, made from the newest state; undefined if there is none. Throws the error of the source once. */
  take(): T | undefined;
  /** Whether no more messages or errors will come. */
  readonly ended: boolean;
  return(): Promise<IteratorResult<T, undefined>>;
}

/** Returns live messages as they are; a source that can only be pulled is read one message ahead. */
export function liveMessages<T>(source: AsyncIterable<T>): LiveMessages<T> {
  return isLive(source) ? source : new PulledMessages(source[Symbol.asyncIterator]());
}

/** Maps each message. The same message must map to the same object, so subscribers continue to share it. */
export function mapMessages<T extends object, U>(source: AsyncIterable<T>, map: (message: T) => U): LiveMessages<U> {
  return new MappedMessages(liveMessages(source), map);
}

function isLive<T>(source: AsyncIterable<T>): source is LiveMessages<T> {
  return 'listen' in source && 'take' in source;
}

class PulledMessages<T> implements LiveMessages<T> {
  readonly #source: AsyncIterator<T>;
  #onMessage: () => void = () => {};
  #taken: { readonly message: T } | { readonly error: unknown } | undefined;
  ended = false;

  constructor(source: AsyncIterator<T>) {
    this.#source = source;
  }

  listen(onMessage: () => void): void {
    this.#onMessage = onMessage;
    this.#pull();
  }

  take(): T | undefined {
    const taken = this.#taken;
    if (!taken) return undefined;
    this.#taken = undefined;
    if ('error' in taken) {
      this.ended = true;
      throw taken.error;
    }
    this.#pull();
    return taken.message;
  }

  #pull(): void {
    const arrive = (taken: { readonly message: T } | { readonly error: unknown } | undefined) => {
      if (this.ended) return;
      this.#taken = taken;
      if (!taken) this.ended = true;
      this.#onMessage();
    };
    // Defers the call, in case the source throws synchronously.
    Promise.resolve()
      .then(() => this.#source.next())
      .then(
        ({ done, value }) => arrive(done ? undefined : { message: value }),
        (error: unknown) => arrive({ error }),
      );
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return this.#source.next();
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.ended = true;
    this.#taken = undefined;
    // Not awaited: a waiting source may respond much later, and its response is irrelevant by then.
    void Promise.resolve(this.#source.return?.()).catch(() => {});
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

class MappedMessages<T extends object, U> implements LiveMessages<U> {
  readonly #source: LiveMessages<T>;
  readonly #map: (message: T) => U;

  constructor(source: LiveMessages<T>, map: (message: T) => U) {
    this.#source = source;
    this.#map = map;
  }

  listen(onMessage: () => void): void {
    this.#source.listen(onMessage);
  }

  take(): U | undefined {
    const message = this.#source.take();
    return message === undefined ? undefined : this.#map(message);
  }

  get ended(): boolean {
    return this.#source.ended;
  }

  async next(): Promise<IteratorResult<U, undefined>> {
    const { done, value } = await this.#source.next();
    return done ? { done: true, value: undefined } : { done: false, value: this.#map(value) };
  }

  async return(): Promise<IteratorResult<U, undefined>> {
    await this.#source.return();
    return { done: true, value: undefined };
  }

  async throw(error: unknown): Promise<IteratorResult<U, undefined>> {
    await this.#source.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
