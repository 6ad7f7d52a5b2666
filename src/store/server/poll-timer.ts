export interface PollTimerOptions {
  /** The pause after work was found, in milliseconds: how soon to poll again without a notification. @default 50 */
  readonly minMs?: number;
  /** The longest pause while there is no work. Without notifications, this is the latency after an idle period. @default 2000 */
  readonly maxMs?: number;
  /** How much each pause without work adds to the next, in milliseconds. @default 50 */
  readonly stepMs?: number;
  /** The random part of a pause, from 0 to 1. It prevents many processes from polling at once. @default 0.2 */
  readonly jitter?: number;
  /** @default Math.random */
  readonly random?: () => number;
}

/** Adaptive polling: decides when to poll for work again. */
export interface PollTimer {
  /** Resolves when woken (also if that happened since the last wait), after the current pause or `mostMs`, or when the signal aborts. */
  wait(signal?: AbortSignal, mostMs?: number): Promise<void>;
  /** Call this when work was found: the next pauses are short again. */
  foundWork(): void;
  /** Ends the next or current wait at once. */
  wake(): void;
}

export function createPollTimer(options: PollTimerOptions = {}): PollTimer {
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
    wait: async (signal, mostMs = maxMs) => {
      if (!woken && !signal?.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(() => endWait(), Math.min(pause * (1 - jitter * random()), mostMs));
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
    foundWork: () => {
      pause = minMs;
    },
  };
}
