export interface EndingStreamOptions<T> {
  /** Called once, whoever ends it: the source, the consumer, an error or {@link EndingStream.end}. */
  readonly onEnd: () => void;
  /** Makes the last value of an error; without it the error is thrown. */
  readonly lastWord?: (error: unknown) => T;
}

export interface EndingStream<T> {
  readonly stream: AsyncIterableIterator<T>;
  /** Ends it now, also while its consumer waits for the next value. */
  end(): void;
}

/** A stream of which one knows when it ends, and that can be ended from outside. */
export function endingStream<T>(
  source: AsyncIterable<T>,
  { onEnd, lastWord }: EndingStreamOptions<T>,
): EndingStream<T> {
  const iterator = source[Symbol.asyncIterator]();
  const done = { done: true, value: undefined } as const;
  let ended = false;
  let wake: ((result: IteratorResult<T>) => void) | undefined;

  function end(): void {
    if (ended) return;
    ended = true;
    wake?.(done);
    onEnd();
  }

  function leave(): void {
    if (ended) return;
    end();
    // Not waited for: a source that is waiting itself may answer much later. What it says then concerns nobody.
    void iterator.return?.().catch(() => {});
  }

  function failed(error: unknown): IteratorResult<T> {
    if (ended) return done;
    end();
    if (!lastWord) throw error;
    return { done: false, value: lastWord(error) };
  }

  const stream: AsyncIterableIterator<T> = {
    [Symbol.asyncIterator]: () => stream,
    next() {
      if (ended) return Promise.resolve(done);
      // Not Promise.race with a promise for the end: it would remember every value's race until the end.
      return new Promise((resolve, reject) => {
        wake = resolve;
        iterator.next().then(
          (result) => {
            if (result.done) end();
            resolve(ended ? done : result);
          },
          (error) => {
            if (!ended) wake = undefined; // it is not woken by the end, but gets the last word
            try {
              resolve(failed(error));
            } catch (thrown) {
              reject(thrown);
            }
          },
        );
      });
    },
    return() {
      leave();
      return Promise.resolve(done);
    },
    throw(error) {
      leave();
      return Promise.reject(error);
    },
  };
  return { stream, end: leave };
}
