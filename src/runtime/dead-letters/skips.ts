import type { Logger } from 'pino';
import { eventsIn, type FoldFailure } from '../../projections/projection/projection.ts';

/** Logs the skipped events of a batch in one line. */
export function logSkips(logger: Logger, id: string, skipped: readonly FoldFailure[]): void {
  const [first] = skipped;
  if (!first) return;
  const events = eventsIn(skipped);
  logger.warn(
    { projection: id, skipped: events, position: first.event.position.toString() },
    `${id}: ${events} events skipped. ${first.error.message}`,
  );
}
