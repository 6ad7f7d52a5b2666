/** Work that reads the current state of something for all who ask. */
export interface SharedRun {
  /**
   * Resolves when a run has ended that began after this call. Calls during a run share the next one, so a hundred calls cause two runs at
   * most.
   */
  run(): Promise<void>;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

/** Runs never overlap. A failed run rejects for those who waited for it, and not for later ones. */
export function createSharedRun(work: () => Promise<void>): SharedRun {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function start(): Promise<void> {
    const run = work().finally(() => {
      running = undefined;
    });
    running = run;
    return run;
  }

  function startAfter(former: Promise<void>): Promise<void> {
    return former
      .catch(() => {}) // reported to those who waited for it
      .then(() => {
        next = undefined;
        return start();
      });
  }

  return {
    run() {
      if (next !== undefined) return next;
      if (running === undefined) return start();
      next = startAfter(running);
      return next;
    },
    async idle() {
      for (let last = next ?? running; last !== undefined; last = next ?? running) await last.catch(() => {});
    },
  };
}
