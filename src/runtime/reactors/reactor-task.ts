import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { streamKey } from '../../events/event-names.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import type { BegunReactor } from '../../reactors/begun-reactor.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import { awaitedName, handlesType, type VersionedReactor } from '../../reactors/versioned-reactor.ts';
import type { EventPage } from '../consumers/event-source.ts';

/** An event that the processor handles: one above the checkpoint, or one whose wait is over. */
export interface ReactorTask {
  readonly event: RecordedEvent;
  /** The version that handles it. */
  readonly reactor: Reactor;
  readonly key: string;
  /** Set if a key function threw. */
  readonly keyError: { readonly error: unknown } | undefined;
  /** Whether its handler has waited. The checkpoint may have passed it. */
  readonly isResumed: boolean;
  state: 'waiting' | 'running' | 'pausing' | 'done';
}

/** The task of an event; undefined if it needs none. An event that is only awaited needs none, unless its key can't be computed. */
export function reactorTask(reactor: BegunReactor, event: RecordedEvent): ReactorTask | undefined {
  const version = reactor.at(event.position);
  const { keyError } = awaitedBy(reactor, event);
  if (!version || (!keyError && !handlesType(version, event))) return undefined;
  const task = { event, reactor: version, isResumed: false, state: 'waiting' as const };
  try {
    return { ...task, key: version.keyOf(event), keyError };
  } catch (error) {
    return { ...task, key: streamKey(version.families, event), keyError: { error } };
  }
}

export interface AwaitedKeys {
  /** The keys under which handlers wait for an event, with the name of its type for the version of the handler. */
  readonly keys: readonly { readonly type: string; readonly key: string }[];
  /** Why a key can't be computed. */
  readonly keyError: ReactorTask['keyError'];
}

export function awaitedBy({ versions }: VersionedReactor, event: RecordedEvent): AwaitedKeys {
  try {
    const keys = versions.flatMap((version) => {
      const key = version.awaitedKeyOf(event);
      return key === undefined
        ? []
        : [{ type: awaitedName(version, version.awaits.get(event.type) ?? event.type), key }];
    });
    return { keys, keyError: undefined };
  } catch (error) {
    return { keys: [], keyError: { error } };
  }
}

/** Up to where this process can handle the events. Another process may be able to continue. */
export interface PageEnd {
  readonly position: GlobalPosition;
  /** Why it can't handle the events after the position. */
  readonly error: RefoldError;
}

/** The events of a page that concern a version of the reactor, up to where this process can handle them. */
export function readablePart(
  { events, upTo }: EventPage,
  reactor: BegunReactor,
  versionsEnd: PageEnd | undefined,
): { readonly events: readonly RecordedEvent[]; readonly upTo: GlobalPosition; readonly end: PageEnd | undefined } {
  const end = versionsEnd && upTo > versionsEnd.position ? versionsEnd : undefined;
  const readable: RecordedEvent[] = [];
  for (const event of events) {
    if (end && event.position > end.position) break;
    if (!concerns(reactor, event)) continue;
    const error = unreadable(event);
    if (isVersionUnknown(error)) {
      const position = globalPosition(event.position - 1n);
      return { events: readable, upTo: position, end: { position, error } };
    }
    readable.push(event);
  }
  return { events: readable, upTo: end?.position ?? upTo, end };
}

/** Whether its version handles the event, or any version awaits it. The page has the types of all versions. */
function concerns(reactor: BegunReactor, event: RecordedEvent): boolean {
  const version = reactor.at(event.position);
  return (version !== undefined && handlesType(version, event)) || reactor.versions.some((one) => awaits(one, event));
}

function awaits({ awaits: types, filter }: Reactor, { family, type }: RecordedEvent): boolean {
  return types.has(type) && filter.some((entry) => entry.family === family && entry.types.includes(type));
}
