import { expect, onTestFinished, vi } from 'vitest';

/** Seconds that a token lasts whose end a test brings about: one that lasts seconds may end on a busy machine before it was used. */
export const hour = 3600;

/** Sees the clock that is set for the end of a token of an {@link hour}; `strike()` lets it come. */
export function watchClock(): { strike(): void } {
  const clock = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => clock.mockRestore());
  return {
    strike() {
      // A token counts `clockTolerance` longer than it says: 5 seconds by default.
      const set = clock.mock.calls.filter(([, ms = 0]) => ms > 3_000_000 && ms <= (hour + 5) * 1000);
      expect(set).toHaveLength(1);
      for (const [ring] of set) ring();
    },
  };
}
