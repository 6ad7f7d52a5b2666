import type { GlobalPosition } from '../../events/global-position.ts';
import { recentSeconds } from '../../projections/projection/activation-rule.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { EventPage } from '../consumers/event-source.ts';

/** Determines, page by page, when the table of a build is complete. */
export interface Completion {
  /** Returns a recent head of the log if all events up to there are folded, otherwise undefined. */
  goal(page: Pick<EventPage, 'upTo'>): Promise<GlobalPosition | undefined>;
}

/**
 * Under load, a table never reaches the head of the log. So it counts as complete when it has folded everything up to a recent head: one that was
 * the head at most {@link recentSeconds} ago, or that the log has passed by at most the declared activation lag. All skipped events up to there are
 * then known when the version's activation is decided.
 *
 * The head is read from the log: a page's horizon is what the process knew, which may be older than the build.
 */
export function createCompletion({ activation }: Projection, log: Pick<EventLog, 'horizon'>): Completion {
  let goal: { readonly position: GlobalPosition; readonly readAt: number } | undefined;
  return {
    async goal({ upTo }) {
      if (goal && upTo < goal.position) return undefined;
      const now = performance.now();
      if (!goal || now - goal.readAt > recentSeconds * 1000) {
        const head = await log.horizon();
        if (!goal || head - goal.position > BigInt(activation.maxLag)) goal = { position: head, readAt: now };
      }
      return upTo >= goal.position ? goal.position : undefined;
    },
  };
}
