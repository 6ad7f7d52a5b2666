import assert from 'node:assert/strict';
import type { Command } from '../commands/define-command.ts';
import type { StreamState } from '../commands/define-state.ts';
import type { EventFamily, EventTypeOf, NewEventOf } from '../events/event-family.ts';
import { type Decision, type DecisionOptions, decisionOf, foldFrozen } from './decision.ts';
import { createInMemoryLog, type GivenEvent } from './in-memory-log.ts';

/** An event with a payload in an older shape. */
export type OldEventOf<F extends EventFamily> = GivenEvent<EventTypeOf<F>> & { readonly payloadVersion: number };

/** The history of a stream. */
export interface GivenStream {
  /** Runs a command on the history. Each call starts from the same history. */
  when(command: Command, input: unknown, options?: DecisionOptions): Decision;
  /** Expects the state that the events fold into. If the state has snapshots, it also takes and reads back a snapshot after each event. */
  thenState<F extends EventFamily, S>(state: StreamState<F, S>, expected: NoInfer<S>): Promise<void>;
}

/**
 * Given the history of a stream, checks what a command decides, or what the state is. Needs no database. Inputs and events are validated by
 * their schemas. `{ type, payload, payloadVersion: 1 }` is an event with a payload in an older shape, which is upcast.
 *
 * @example
 * await givenStream(cart, opened, added).when(confirmShoppingCart, { cartId: 'c1' }).thenEvents(confirmed);
 * await givenStream(cart).when(confirmShoppingCart, { cartId: 'c1' }).thenRejected('There is no such cart.');
 * await givenStream(cart, opened).thenState(cartState, { status: 'Opened' });
 */
export function givenStream<F extends EventFamily>(
  family: F,
  ...history: readonly (NewEventOf<F> | OldEventOf<F>)[]
): GivenStream {
  return {
    when: (command, input, options = {}) =>
      decisionOf(command, input, options, (streams) => {
        if (streams.length > 1)
          assert.fail(
            `'${command.name}' decides on ${streams.length} streams. Pass the history of each to givenEvents(…).when(…).`,
          );
        return streams.map(({ streamId }) => ({ family, streamId, events: history }));
      }),
    async thenState(state, expected) {
      const past = await createInMemoryLog().append({ family, streamId: 'given', events: history });
      assert.deepEqual(foldFrozen(state, past), expected);
      const { snapshots } = state;
      if (!snapshots) return;
      for (let kept = 0; kept <= past.length; kept++) {
        const snapshot = JSON.parse(snapshots.encode(foldFrozen(state, past.slice(0, kept))));
        assert.deepEqual(
          withoutUndefined(foldFrozen(state, past.slice(kept), snapshots.decode(snapshot))),
          withoutUndefined(expected),
          `The state differs if a snapshot of it was taken after event ${kept}.`,
        );
      }
    },
  };
}

/** Removes undefined members: an undefined member and a missing one are equal, and JSON keeps neither. */
function withoutUndefined(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [name, withoutUndefined(part)]));
}
