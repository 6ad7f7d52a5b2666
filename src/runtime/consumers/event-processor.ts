import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../../events/event-family.ts';
import { EventPace } from '../../events/event-pace.ts';
import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import { unreadable } from '../../events/read-payload.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { Handled } from '../../reactors/reactor.ts';
import type { Processor } from './event-source.ts';

export interface EventProcessorOptions<F extends EventFamily> {
  readonly id: string;
  /** The family or families whose events it receives. */
  readonly events: F | readonly F[];
  /** The event types it receives. @default all types of the families */
  readonly types?: readonly EventTypeOf<F>[];
  /** It receives events past this position only. @default the beginning of the log */
  readonly checkpoint?: GlobalPosition;
  /**
   * Handles one event at a time, in the order of the log. An error ends the processor, with the checkpoint before the event. So does an event
   * whose payload can't be read: `PAYLOAD_VERSION_UNKNOWN` or `UPCAST_FAILED`.
   */
  readonly handle: (event: RecordedEventOf<F>) => Promise<Handled>;
  /**
   * Stores the position up to which everything is handled. Called after each page that moved the position, even if the page failed or stopped
   * midway. If the process ends before the call, events are handled again: delivery is at least once.
   */
  readonly saveCheckpoint?: (position: GlobalPosition) => Promise<void> | void;
}

/** A processor that passes events to a function. */
export interface EventProcessor extends Processor {
  /** The position up to which everything is handled. */
  readonly position: GlobalPosition;
  /** Events that were handled, without those skipped. */
  readonly handled: number;
  /** Events for which the handler returned `skip`. */
  readonly skipped: number;
}

/**
 * Creates a processor from a function, for your own consumer.
 *
 * @example
 * const firstOrders = eventProcessor({ id: 'first-orders', events: order, handle: async (event) => (seen.push(event) < 10 ? 'ack' : 'stop') });
 */
export function eventProcessor<F extends EventFamily>(options: EventProcessorOptions<F>): EventProcessor {
  const { id, checkpoint = beginning, saveCheckpoint } = options;
  const types: readonly string[] | undefined = options.types;
  const families = (Array.isArray(options.events) ? options.events : [options.events]) as readonly F[]; // F or a list of it
  const filter: EventFilter[] = families.map((family) => ({
    family: family.name,
    types: family.types.filter((type) => types?.includes(type) ?? true),
  }));
  const handle = options.handle as (event: RecordedEvent) => ReturnType<typeof options.handle>; // receives these families' events only
  let position = checkpoint;
  let saved = checkpoint;
  let handled = 0;
  let skipped = 0;
  const pace = new EventPace();

  async function save(): Promise<void> {
    if (position === saved) return;
    await saveCheckpoint?.(position);
    saved = position;
  }

  return {
    id,
    filter: filter.filter((entry) => entry.types.length > 0),
    checkpoint,
    get position() {
      return position;
    },
    get handled() {
      return handled;
    },
    get skipped() {
      return skipped;
    },
    async process({ events, upTo }) {
      try {
        for (const event of events) {
          const unread = unreadable(event);
          if (unread) throw unread;
          // Also if the function waits for nothing.
          if (pace.isDue) await pace.turn();
          const result = await handle(event);
          position = event.position;
          if (result === 'skip') skipped++;
          else handled++;
          if (result === 'stop') return 'stop';
        }
        position = upTo;
        return 'continue';
      } finally {
        await save();
      }
    },
  };
}
