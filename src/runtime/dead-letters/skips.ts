import type { Logger } from 'pino';
import { eventsIn, type FoldFailure } from '../../projections/projection/projection.ts';
import type { NewDeadLetter } from '../../store/processors/dead-letters.ts';
import { logDeadLetters } from './dead-letters.ts';

/** Logs what a batch left out of the rows: its dead letters in one line, and its skipped events in one line. */
export function logLeftOut(
  logger: Logger,
  id: string,
  { letters, skipped }: { readonly letters: readonly NewDeadLetter[]; readonly skipped: readonly FoldFailure[] },
): void {
  logDeadLetters(logger, id, letters);
  logSkips(logger, id, skipped);
}

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
