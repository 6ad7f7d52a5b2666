import { setTimeout as pause } from 'node:timers/promises';

/** Waits until a condition holds; the test's own time-out is the only limit. Says what it waits for when asked to give up. */
export async function until<T>(
  condition: () => Promise<T | false | undefined | null> | T | false | undefined | null,
): Promise<T> {
  for (;;) {
    const value = await condition();
    if (value) return value;
    await pause(5);
  }
}
