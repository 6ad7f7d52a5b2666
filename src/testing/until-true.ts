import { setTimeout as pause } from 'node:timers/promises';

export interface WaitOptions {
  /** How long to wait, in milliseconds. On timeout it fails with what was found last. @default 10000 */
  readonly timeout?: number;
  /** Aborts the wait. */
  readonly signal?: AbortSignal;
}

/** Polls until `look` returns undefined. `look` returns an Error that says what is missing; the last one is thrown on timeout. */
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
