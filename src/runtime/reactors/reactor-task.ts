import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { streamKey } from '../../events/event-names.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import type { EventPage } from '../consumers/event-source.ts';

/** An event that the processor handles: one above the checkpoint, or one whose wait is over. */
export interface ReactorTask {
  readonly event: RecordedEvent;
  readonly key: string;
  /** Set if a key function threw. */
  readonly keyError: { readonly error: unknown } | undefined;
  /** Whether its handler has waited. The checkpoint may have passed it. */
  readonly isResumed: boolean;
  state: 'waiting' | 'running' | 'pausing' | 'done';
}

export function reactorTask(reactor: Reactor, event: RecordedEvent): ReactorTask {
  try {
    const { keyError } = awaitedBy(reactor, event);
    return { event, key: reactor.keyOf(event), keyError, isResumed: false, state: 'waiting' };
  } catch (error) {
    const key = streamKey(reactor.families, event);
    return { event, key, keyError: { error }, isResumed: false, state: 'waiting' };
  }
}

/** Whether the event needs a task. One that is only awaited needs none, unless its key can't be computed. */
export function needsHandling({ handled, awaits }: Reactor, { event, keyError }: ReactorTask): boolean {
  if (awaits.size === 0 || keyError) return true;
  return handled.some(({ family, types }) => family === event.family && types.includes(event.type));
}

/** The key under which handlers wait for an event, or why it can't be computed. */
export function awaitedBy(
  reactor: Reactor,
  event: RecordedEvent,
): { readonly key: string | undefined; readonly keyError: ReactorTask['keyError'] } {
  try {
    return { key: reactor.awaitedKeyOf(event), keyError: undefined };
  } catch (error) {
    return { key: undefined, keyError: { error } };
  }
}

/** The events of a page before the first one whose payload version this process does not know. */
export function readablePart({ events, upTo }: EventPage): {
  readonly events: readonly RecordedEvent[];
  readonly upTo: GlobalPosition;
  /** The error of that first one. */
  readonly unread: RefoldError | undefined;
} {
  for (const [index, event] of events.entries()) {
    const unread = unreadable(event);
    if (isVersionUnknown(unread))
      return { events: events.slice(0, index), upTo: globalPosition(event.position - 1n), unread };
  }
  return { events, upTo, unread: undefined };
}
