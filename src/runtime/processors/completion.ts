import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { EventPage } from '../consumers/event-source.ts';

/** Tells when a building table is complete, page by page. */
export interface Completion {
  /** What the log held when the table came near its end, once all of that is folded; undefined before. */
  goal(page: Pick<EventPage, 'upTo' | 'horizon'>): GlobalPosition | undefined;
}

/**
 * Under load, a table is never level with the log. So it is complete when it is within its activation's lag and has folded all that the log held
 * when it first was: whatever it leaves out of that is known when it is decided whether the version may answer.
 */
export function createCompletion({ activation }: Projection): Completion {
  let goal: GlobalPosition | undefined;
  return {
    goal({ upTo, horizon }) {
      if (horizon - upTo > BigInt(activation.maxLag)) return undefined;
      goal ??= horizon;
      return upTo >= goal ? goal : undefined;
    },
  };
}
