import type { RecordedEvent } from '../../events/event.ts';
import { keyText, type RowKey } from '../projection/projection.ts';
import type { FoldStep } from './fold.ts';

/**
 * Events that an operator has discarded: each for one row, or for all of its rows if its key could not be computed. Every later fold of the
 * log leaves them out.
 */
export type Discarded = ReadonlySet<string>;

/** The text of a discarded event. A null key means the whole event: its key could not be computed. */
export function discardText(position: bigint, key: RowKey | null): string {
  return `${position} ${key === null ? 'null' : keyText(key)}`;
}

/** The events whose keys are computed: without those that were discarded because their key could not be computed. */
export function eventsToFold(events: readonly RecordedEvent[], discarded: Discarded): readonly RecordedEvent[] {
  return discarded.size === 0 ? events : events.filter(({ position }) => !discarded.has(discardText(position, null)));
}

/** The steps to fold: without the events that were discarded for their row. */
export function stepsToFold(steps: readonly FoldStep[], discarded: Discarded): readonly FoldStep[] {
  return discarded.size === 0 ? steps : steps.filter(({ event, text }) => !discarded.has(`${event.position} ${text}`));
}
