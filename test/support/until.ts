import { setTimeout as pause } from 'node:timers/promises';

/** Waits until a condition holds; the test's own timeout is the only limit. If it is aborted, it says what it waits for. */
export async function until<T>(
  condition: () => Promise<T | false | undefined | null> | T | false | undefined | null,
): Promise<T> {
  for (;;) {
    const value = await condition();
    if (value) return value;
    await pause(5);
  }
}
