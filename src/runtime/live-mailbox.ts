/** What a subscriber pulls from. It holds no messages: each is made when it is pulled, from the newest state. */
export interface Mailbox<T> {
  readonly messages: AsyncIterableIterator<T>;
  /** Says that there may be a message. */
  wake(): void;
  /** Ends the messages: the next pull throws, later ones are done. */
  fail(error: unknown): void;
  /** Ends the messages in peace. */
  end(): void;
}

export interface MailboxOptions<T> {
  /** Called once, with the first pull. */
  start(): void;
  /** The next message; undefined while there is none. */
  take(): T | undefined;
  /** Called once, at the end, whoever brought it about; not where nothing was ever pulled. */
  stop(): void;
}

interface Pull<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

export function createMailbox<T>({ start, take, stop }: MailboxOptions<T>): Mailbox<T> {
  const pulls: Pull<T>[] = [];
  let state: 'new' | 'open' | 'ended' = 'new';
  let failure: { readonly error: unknown } | undefined;

  function end(): void {
    const was = state;
    state = 'ended';
    if (was === 'open') stop();
    for (const pull of pulls.splice(0)) pull.resolve({ done: true, value: undefined });
  }

  const messages: AsyncIterableIterator<T> = {
    next() {
      if (state === 'new') {
        state = 'open';
        start();
      }
      if (failure) {
        const { error } = failure;
        failure = undefined;
        return Promise.reject(error);
      }
      if (state === 'ended') return Promise.resolve({ done: true, value: undefined });
      // Pulls are answered in their order.
      const message = pulls.length === 0 ? take() : undefined;
      if (message !== undefined) return Promise.resolve({ done: false, value: message });
      return new Promise((resolve, reject) => pulls.push({ resolve, reject }));
    },
    return() {
      failure = undefined;
      end();
      return Promise.resolve({ done: true, value: undefined });
    },
    throw(error) {
      failure = undefined;
      end();
      return Promise.reject(error);
    },
    [Symbol.asyncIterator]: () => messages,
  };

  return {
    messages,
    wake() {
      while (state === 'open' && pulls.length > 0) {
        const message = take();
        if (message === undefined) return;
        pulls.shift()?.resolve({ done: false, value: message });
      }
    },
    fail(error) {
      if (state === 'ended') return;
      const pull = pulls.shift();
      if (pull) pull.reject(error);
      else failure = { error };
      end();
    },
    end,
  };
}
