import type { Logger } from 'pino';
import type { OnSlowEvent } from '../../events/event-pace.ts';

/** Returns what receives the slow events of a version, a reactor or an upcaster. */
export type SlowEvents = (of: string) => OnSlowEvent;

// A build may have thousands of them: one line says how many were left out.
const logEvery = 10_000;

/** Logs and counts events on which code of the application worked for a second or longer. */
export function createSlowEvents(logger: Logger, count?: (of: string) => void): SlowEvents {
  return (of) => {
    let loggedAt = Number.NEGATIVE_INFINITY;
    let unlogged = 0;
    return ({ type, position, streamId }, milliseconds) => {
      count?.(of);
      const now = performance.now();
      if (now - loggedAt < logEvery) return void unlogged++;
      const others = unlogged === 0 ? '' : ` ${unlogged} more slow events were not logged since the last line.`;
      loggedAt = now;
      unlogged = 0;
      const durationMs = Math.round(milliseconds);
      logger.warn(
        { of, type, position: position.toString(), streamId, durationMs },
        `${of}: its code took ${durationMs} ms for '${type}' at position ${position} (stream '${streamId}'). Nothing else ran in this process meanwhile. Make that code faster, or give it a process of its own.${others}`,
      );
    };
  };
}
