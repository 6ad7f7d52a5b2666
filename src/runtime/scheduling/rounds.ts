/** Something that is done again and again until it is stopped. */
export interface Rounds {
  /** Does the next one at once, or another right after the one in work. */
  soon(): void;
  /** Ends what is in work; resolves when nothing of it is left. */
  stop(): Promise<void>;
}

/** Runs one round after the other, so many milliseconds apart; `work` has to end soon when the signal aborts. */
export function createRounds(
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Rounds {
  const stopping = new AbortController();
  let working = Promise.resolve();
  let busy = false;
  let again = false;

  function round(): void {
    if (stopping.signal.aborted) return;
    if (busy) {
      again = true;
      return;
    }
    again = false;
    busy = true;
    working = work(stopping.signal)
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) onError(error);
      })
      .finally(() => {
        busy = false;
        if (again) round();
      });
  }

  const timer = setInterval(() => {
    if (!busy) round();
  }, milliseconds);
  round();
  return {
    soon: round,
    async stop() {
      clearInterval(timer);
      stopping.abort(new Error('stopped'));
      await working;
    },
  };
}
