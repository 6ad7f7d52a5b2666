export interface WakerOptions {
  /** Pause after news, in milliseconds: how soon to look again without a notification. @default 50 */
  readonly minMs?: number;
  /** Longest pause while nothing comes. Without notifications this is the latency after silence. @default 2000 */
  readonly maxMs?: number;
  /** What a pause without news adds to the next. @default 50 */
  readonly stepMs?: number;
  /** Part of a pause that is left to chance, so that many processes don't ask at once. @default 0.2 */
  readonly jitter?: number;
  /** @default Math.random */
  readonly random?: () => number;
}

/** Adaptive polling: says when to look for work again. */
export interface Waker {
  /** Resolves when it is woken (also where that was since the last wait), after the current pause, or at the signal. */
  wait(signal?: AbortSignal): Promise<void>;
  /** Work was found: the next pauses are short again. */
  news(): void;
  /** Ends the next or current wait at once. */
  wake(): void;
}

export function createWaker(options: WakerOptions = {}): Waker {
  const { minMs = 50, maxMs = 2000, stepMs = 50, jitter = 0.2, random = Math.random } = options;
  let pause = minMs;
  let woken = false;
  let endWait = () => {};

  const wake = () => {
    woken = true;
    endWait();
  };

  return {
    wake,
    wait: async (signal) => {
      if (!woken && !signal?.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(() => endWait(), pause * (1 - jitter * random()));
          endWait = () => {
            clearTimeout(timer);
            signal?.removeEventListener('abort', endWait);
            resolve();
          };
          signal?.addEventListener('abort', endWait, { once: true });
        });
        endWait = () => {};
      }
      pause = woken ? minMs : Math.min(pause + stepMs, maxMs);
      woken = false;
    },
    news: () => {
      pause = minMs;
    },
  };
}
