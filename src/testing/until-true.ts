import { setTimeout as pause } from 'node:timers/promises';

export interface WaitOptions {
  /** How long to wait, in milliseconds; then it fails, saying what was found last. @default 10000 */
  readonly timeout?: number;
  /** Gives up early. */
  readonly signal?: AbortSignal;
}

/** Looks again and again until nothing is missing any more; what is missing is told as an Error when time is up. */
export async function untilTrue(look: () => Promise<Error | undefined>, options: WaitOptions): Promise<void> {
  const { timeout = 10_000, signal } = options;
  const end = performance.now() + timeout;
  for (;;) {
    signal?.throwIfAborted();
    const missing = await look();
    if (!missing) return;
    if (performance.now() > end) {
      missing.message = `Waited ${timeout} ms. ${missing.message}`;
      throw missing;
    }
    await pause(10);
  }
}
