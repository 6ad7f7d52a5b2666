import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { EventPage } from '../consumers/event-source.ts';

/** Determines, page by page, when the table of a build is complete. */
export interface Completion {
  /** Returns the head of the log at the time when the table first came near it, once all events up to there are folded; undefined before. */
  goal(page: Pick<EventPage, 'upTo' | 'horizon'>): Promise<GlobalPosition | undefined>;
}

/**
 * Under load, a table never reaches the head of the log. So it counts as complete when it is within the declared activation lag and has folded
 * everything that was in the log when it first was. All skipped events up to there are then known when the version's activation is decided.
 *
 * The head is read from the log: a page's horizon is what the process knew, which may be older than the build.
 */
export function createCompletion({ activation }: Projection, log: Pick<EventLog, 'horizon'>): Completion {
  const isNear = (upTo: GlobalPosition, head: GlobalPosition) => head - upTo <= BigInt(activation.maxLag);
  let goal: GlobalPosition | undefined;
  return {
    async goal({ upTo, horizon }) {
      if (goal === undefined) {
        if (!isNear(upTo, horizon)) return undefined;
        const head = await log.horizon();
        if (!isNear(upTo, head)) return undefined;
        goal = head;
      }
      return isNear(upTo, horizon) && upTo >= goal ? goal : undefined;
    },
  };
}
