import type { Judge } from './judge.ts';

export const slowEventsAreOnlySlow: Judge = {
  name: 'slow-events-are-only-slow',
  promise: 'a process that an event blocks for longer than its lease keeps what it owns',
  async differences({ trials }) {
    return trials.slowEvents
      .filter(({ lost }) => lost.length > 0)
      .map(
        ({ slowMs, owned, lost }) =>
          `while an event took ${Math.round(slowMs)} ms, its process lost ${lost.join(', ')} of ${owned.join(', ')}`,
      );
  },
};
