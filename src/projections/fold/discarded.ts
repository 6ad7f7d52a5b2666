import type { RecordedEvent } from '../../events/event.ts';
import { keyText, type RowKey } from '../declaration/projection.ts';
import type { FoldStep } from './fold.ts';

/**
 * Events that an operator has thrown away, each for one row, or for whatever rows its key would have told. They are left out
 * wherever the log is folded again.
 */
export type Discarded = ReadonlySet<string>;

/** The text that stands for an event thrown away for a row; for the whole event where its key could not be told. */
export function discardText(position: bigint, key: RowKey | null): string {
  return `${position} ${key === null ? 'null' : keyText(key)}`;
}

/** The events whose key is to be asked for: not those that were thrown away because it could not be told. */
export function eventsToFold(events: readonly RecordedEvent[], discarded: Discarded): readonly RecordedEvent[] {
  return discarded.size === 0 ? events : events.filter(({ position }) => !discarded.has(discardText(position, null)));
}

/** The steps to fold: not those of events that were thrown away for their row. */
export function stepsToFold(steps: readonly FoldStep[], discarded: Discarded): readonly FoldStep[] {
  return discarded.size === 0 ? steps : steps.filter(({ event, text }) => !discarded.has(`${event.position} ${text}`));
}
