import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';

/** A part of the log, in log order. */
export interface EventPage {
  /** Where the previous page ended. This page begins with the next position. */
  readonly after: GlobalPosition;
  /** `events` holds every matching event in `(after, upTo]`. */
  readonly upTo: GlobalPosition;
  readonly events: readonly RecordedEvent[];
  /** How far the log could be read at the time. A page that reaches the horizon is the newest there is. */
  readonly horizon: GlobalPosition;
  /** The size of the events as text, about. Bounds what a busy processor keeps. @default 0 */
  readonly bytes?: number;
}

/**
 * Where a consumer gets its events: the log (`refold.source`), an array in a test (`createInMemoryLog().source`), or any other source that
 * keeps an order. Once a page has reached `upTo`, nothing at or below that position may change or be added.
 */
export interface EventSource {
  /**
   * Returns the next events that pass the filter, at most `limit`, in order. If there are none, `upTo` is the horizon. If the source is not
   * as far as `after`, `upTo` is `after`. An error ends the processors that the page was for.
   */
  read(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage>;
  /** Resolves when there may be events past the position, at the latest after a while, and when aborted. */
  wait(after: GlobalPosition, signal: AbortSignal): Promise<void>;
  /**
   * How often the source found that events it had delivered are gone, for example after a fail-over that lost some. Processors that were
   * added before that end with `HISTORY_CHANGED`. @default never
   */
  readonly cuts?: number;
}

/** What a consumer feeds. A processor owns its checkpoint, its errors and its pace. {@link eventProcessor} creates one from a function. */
export interface Processor {
  /** Identifies the processor to operators. */
  readonly id: string;
  /** The event types that it is subscribed to, by family. */
  readonly filter: readonly EventFilter[];
  /** Where it starts: it receives events past this position only. */
  readonly checkpoint: GlobalPosition;
  /**
   * Processes one page of its events. A page may be empty and then only tells how far the log was read. The next page comes after the
   * returned promise resolves. `stop` ends the processor, and so does an error, which its owner receives.
   */
  process(page: EventPage): Promise<'continue' | 'stop'>;
}
