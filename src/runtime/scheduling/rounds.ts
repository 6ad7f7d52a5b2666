/** A periodic task. */
export interface Rounds {
  /** Runs the task now, or once more right after the current run. */
  soon(): void;
  /** Aborts the current run, and resolves when it has ended. */
  stop(): Promise<void>;
}

/** Runs a task periodically, at the given interval. Runs never overlap. `work` must end soon after the signal aborts. */
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
