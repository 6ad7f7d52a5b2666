import { type GlobalPosition, laterPosition } from '../events/global-position.ts';
import type { EventLog } from '../store/event-log.ts';
import type { EventSource } from './event-source.ts';

/** Sleeps until there may be news of the log. */
export interface LogWaker {
  wait(): Promise<void>;
  /** There were news: the next looks come soon. */
  news(): void;
}

/**
 * The log as a source of events. The horizon is looked up once for all readings of the process, and again only when one has reached it:
 * far behind, one look serves many pages.
 */
export function createLogSource(log: EventLog, waker: LogWaker): EventSource {
  let known: GlobalPosition | undefined;
  let looking: Promise<GlobalPosition> | undefined;
  let waiting: Promise<void> | undefined;

  function look(): Promise<GlobalPosition> {
    looking ??= log.horizon().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  return {
    async read(after, filter, limit) {
      if (known === undefined || after >= known) known = laterPosition(known ?? after, await look());
      const horizon = known;
      if (after >= horizon) return { after, upTo: after, events: [], horizon: after };
      // The horizon was looked up in an earlier statement: this one's snapshot holds everything below it.
      const page = await log.readAll({ after, upTo: horizon, filter, limit });
      if (page.events.length > 0) waker.news();
      return { after, upTo: page.upTo, events: page.events, horizon };
    },
    async wait(_after, signal) {
      // One wait for all readings: each wakes with the others.
      waiting ??= waker.wait().finally(() => {
        waiting = undefined;
      });
      const woken = waiting;
      if (signal.aborted) return;
      await new Promise<void>((resolve) => {
        const end = () => {
          signal.removeEventListener('abort', end);
          resolve();
        };
        signal.addEventListener('abort', end);
        void woken.then(end, end);
      });
    },
  };
}
