import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventPage } from '../consumers/event-source.ts';

/** Determines, page by page, when the table of a build is complete. */
export interface Completion {
  /** Returns the head of the log at the time when the table first came near it, once all events up to there are folded; undefined before. */
  goal(page: Pick<EventPage, 'upTo' | 'horizon'>): GlobalPosition | undefined;
}

/**
 * Under load, a table never reaches the head of the log. So it counts as complete when it is within the declared activation lag and has folded
 * everything that was in the log when it first was. All skipped events up to there are then known when the version's activation is decided.
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
