import { setTimeout as pause } from 'node:timers/promises';

/** In milliseconds. */
const pauses = { first: 5, longest: 250, ofTheWait: 0.1 } as const;

/**
 * Waits until a condition holds; the test's own timeout is the only limit. The longer it waits, the less often it asks: many tests wait at the
 * same time for processes that need the machine.
 */
export async function until<T>(
  condition: () => Promise<T | false | undefined | null> | T | false | undefined | null,
): Promise<T> {
  const start = performance.now();
  for (;;) {
    const value = await condition();
    if (value) return value;
    const waited = performance.now() - start;
    await pause(Math.min(pauses.longest, Math.max(pauses.first, waited * pauses.ofTheWait)));
  }
}
