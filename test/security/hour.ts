import { expect, onTestFinished, vi } from 'vitest';

/** Lifetime in seconds of a token whose end a test triggers: a token of a few seconds may expire on a busy machine before it is used. */
export const hour = 3600;

/** Watches timers for the one that ends an {@link hour}'s token; `strike()` fires it. */
export function watchClock(): { strike(): void } {
  const clock = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => clock.mockRestore());
  return {
    strike() {
      // A token is accepted `clockTolerance` longer than it says: 5 seconds by default.
      const set = clock.mock.calls.filter(([, ms = 0]) => ms > 3_000_000 && ms <= (hour + 5) * 1000);
      expect(set).toHaveLength(1);
      for (const [ring] of set) ring();
    },
  };
}
