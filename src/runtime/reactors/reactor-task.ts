import type { RecordedEvent } from '../../events/event.ts';
import { streamKey } from '../../events/event-names.ts';
import type { Reactor } from '../../reactors/reactor.ts';

/** An event that the processor has accepted and that is still above the checkpoint. */
export interface ReactorTask {
  readonly event: RecordedEvent;
  readonly key: string;
  /** Set if the key function threw. */
  readonly keyError: { readonly error: unknown } | undefined;
  state: 'waiting' | 'running' | 'pausing' | 'done';
}

export function reactorTask(reactor: Reactor, event: RecordedEvent): ReactorTask {
  try {
    return { event, key: reactor.keyOf(event), keyError: undefined, state: 'waiting' };
  } catch (error) {
    const key = streamKey(reactor.families, event);
    return { event, key, keyError: { error }, state: 'waiting' };
  }
}
