import type { RecordedEvent } from '../events/event.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import type { EventFilter } from '../projections/projection.ts';

/** A part of the log, in its order. */
export interface EventPage {
  readonly after: GlobalPosition;
  /** Everything that matches in `(after, upTo]` is in `events`. */
  readonly upTo: GlobalPosition;
  readonly events: readonly RecordedEvent[];
  /** How far the log could be read when the page was; a page that reaches it is the newest there is. */
  readonly horizon: GlobalPosition;
}

/** Where a consumer gets its events: the log, or anything else that keeps an order. */
export interface EventSource {
  read(after: GlobalPosition, filter: readonly EventFilter[], limit: number): Promise<EventPage>;
  /** Resolves when there may be something past the position, and at the latest after a while; also when aborted. */
  wait(after: GlobalPosition, signal: AbortSignal): Promise<void>;
}

/** What a consumer feeds. It owns its checkpoint, its errors and its pace. */
export interface Processor {
  readonly id: string;
  readonly filter: readonly EventFilter[];
  /** Where it starts: it gets events past this position only. */
  readonly checkpoint: GlobalPosition;
  /** One page of its own events. `stop` ends the processor; so does an error, which its owner sees. */
  process(page: EventPage): Promise<'continue' | 'stop'>;
}
