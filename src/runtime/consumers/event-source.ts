import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/declaration/projection.ts';

/** A part of the log, in its order. */
export interface EventPage {
  /** Where the page before it ended: the page begins with the next position. */
  readonly after: GlobalPosition;
  /** Everything that matches in `(after, upTo]` is in `events`. */
  readonly upTo: GlobalPosition;
  readonly events: readonly RecordedEvent[];
  /** How far the log could be read when the page was; a page that reaches it is the newest there is. */
  readonly horizon: GlobalPosition;
}

/**
 * Where a consumer gets its events: the log (`refold.source`), an array in a test (`createInMemoryLog().source`), or anything else that keeps
 * an order: what is once at or below a page's `upTo` never changes, and nothing is added there.
 */
export interface EventSource {
  /**
   * The next events that pass the filter, `limit` at most, in order. Without any, a page with `upTo` at the horizon; where the source
   * has not come as far as `after`, one with `upTo` at `after`. An error ends the processors that the page was for.
   */
  read(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage>;
  /** Resolves when there may be something past the position, and at the latest after a while; also when aborted. */
  wait(after: GlobalPosition, signal: AbortSignal): Promise<void>;
  /**
   * How often it was found that events are gone which were read before, as after a fail-over that lost some: processors that were added before
   * then end with `HISTORY_CHANGED`. @default never
   */
  readonly cuts?: number;
}

/** What a consumer feeds. It owns its checkpoint, its errors and its pace. {@link eventProcessor} makes one of a function. */
export interface Processor {
  /** Names it, for whoever looks after it. */
  readonly id: string;
  /** The event types that it gets, by family. */
  readonly filter: readonly EventFilter[];
  /** Where it starts: it gets events past this position only. */
  readonly checkpoint: GlobalPosition;
  /**
   * One page of its own events; pages may be without any, and tell how far the log was read. The next comes when this one's promise has
   * resolved. `stop` ends the processor; so does an error, which its owner sees.
   */
  process(page: EventPage): Promise<'continue' | 'stop'>;
}
