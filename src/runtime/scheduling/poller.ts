import { createPollTimer } from '../../store/server/poll-timer.ts';
import { untraced } from '../../tracing.ts';

/**
 * `found`: the next pauses are short again. `soon`: something waits for a thing that takes milliseconds. The next pauses are one millisecond, then
 * two, four and so on, up to the usual pause.
 */
export type PollResult = 'found' | 'soon' | 'idle';

export interface PollerOptions {
  /** The pause after something was found, in milliseconds. */
  readonly min: number;
  /** The longest pause while nothing is found. Milliseconds. */
  readonly max: number;
  /** How much each pause without a result adds to the next. Milliseconds. */
  readonly step: number;
  /** Polls once. It must end soon after the signal aborts. */
  poll(signal: AbortSignal): Promise<PollResult>;
  onError(error: unknown): void;
  /** Returns the pause after this many failures in a row. A wake-up does not shorten it. @default the usual pause */
  readonly backoff?: (failures: number) => number;
  /** Polling rests while this is false. Call `wake` when it changes. @default always true */
  readonly isNeeded?: () => boolean;
}

/** Polls, adaptively, until it is stopped. Polls never overlap. */
export interface Poller {
  /** Polls now, or once more right after the current poll. Calls of one turn of the event loop share the poll. */
  wake(): void;
  /** Makes the next pauses short: something is going on. */
  quicken(): void;
  /** Aborts the current poll, and resolves when it has ended. */
  stop(): Promise<void>;
}

/** Creates a poller that rests until its first `wake`. */
export function createPoller(options: PollerOptions): Poller {
  const { min, max, step, poll, onError, backoff, isNeeded = () => true } = options;
  const pollTimer = createPollTimer({ minMs: min, maxMs: max, stepMs: step, jitter: 0 });
  const stopping = new AbortController();
  const { signal } = stopping;
  let running = Promise.resolve();
  let isRunning = false;
  let failures = 0;
  let soon = 0;

  async function run(): Promise<void> {
    while (isNeeded() && !signal.aborted) {
      await new Promise((resolve) => setImmediate(resolve));
      if (signal.aborted) break;
      try {
        const result = await poll(signal);
        if (result !== 'idle') pollTimer.foundWork();
        soon = result === 'soon' ? soon + 1 : 0;
        failures = 0;
      } catch (error) {
        failures++;
        if (!signal.aborted) onError(error);
        if (backoff) {
          await pause(backoff(failures), signal);
          continue;
        }
      }
      await pollTimer.wait(signal, soon > 0 ? 2 ** (soon - 1) : undefined);
    }
    isRunning = false;
  }

  return {
    wake() {
      if (isRunning) return pollTimer.wake();
      isRunning = true;
      running = untraced(run); // it works for all, not only for what has started it
    },
    quicken: pollTimer.foundWork,
    async stop() {
      stopping.abort(new Error('stopped'));
      await running;
    },
  };
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener('abort', end, { once: true });
  });
}
