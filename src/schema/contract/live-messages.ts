/**
 * Messages of a subscription that can be taken instead of pulled: without a promise for each, so that one change reaches ten thousand
 * subscribers in one turn. Whoever listens never calls `next`.
 */
export interface LiveMessages<T> extends AsyncIterableIterator<T> {
  /** Begins. Calls whenever there may be a message to take, and at the end. */
  listen(onNews: () => void): void;
  /** The next message, made of the newest state; undefined while there is none. Throws once what the messages failed with. */
  take(): T | undefined;
  /** Whether no message and no error will come. */
  readonly ended: boolean;
  return(): Promise<IteratorResult<T, undefined>>;
}

/** Messages as they are, or, of a source that can only be pulled from, one ahead. */
export function liveMessages<T>(source: AsyncIterable<T>): LiveMessages<T> {
  return isLive(source) ? source : new PulledMessages(source[Symbol.asyncIterator]());
}

/** Other messages, each made of one. The same of the same, so that those who share a message go on sharing. */
export function mapMessages<T extends object, U>(source: AsyncIterable<T>, map: (message: T) => U): LiveMessages<U> {
  return new MappedMessages(liveMessages(source), map);
}

function isLive<T>(source: AsyncIterable<T>): source is LiveMessages<T> {
  return 'listen' in source && 'take' in source;
}

class PulledMessages<T> implements LiveMessages<T> {
  readonly #source: AsyncIterator<T>;
  #onNews: () => void = () => {};
  #taken: { readonly message: T } | { readonly error: unknown } | undefined;
  ended = false;

  constructor(source: AsyncIterator<T>) {
    this.#source = source;
  }

  listen(onNews: () => void): void {
    this.#onNews = onNews;
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
      this.#onNews();
    };
    // In a turn of its own where the source throws at once.
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
    // Not waited for: a source that is waiting itself may answer much later. What it says then concerns nobody.
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

  listen(onNews: () => void): void {
    this.#source.listen(onNews);
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
