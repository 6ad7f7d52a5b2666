import assert from 'node:assert/strict';
import type { Command } from '../commands/define-command.ts';
import type { StreamState } from '../commands/define-state.ts';
import { CommandRejected } from '../errors.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from '../events/event.ts';
import { type EventFamily, type NewEventOf, validateEvent } from '../events/event-family.ts';
import { deepFreeze } from '../projections/columns/deep-freeze.ts';
import { createInMemoryLog } from './in-memory-log.ts';

export interface DecisionOptions {
  /** What `decide` is told is the time. @default '2026-01-01T00:00:00.000Z' */
  readonly now?: string;
  readonly metadata?: EventMetadata;
}

/**
 * What a command has led to; awaiting one of its methods runs it. Each throws an `AssertionError` where it is otherwise, which shows what
 * was expected beside what was found. State, events and input are frozen, so that code that changes them fails there.
 */
export interface Decision {
  /** Exactly these events, in this order. */
  thenEvents(...expected: readonly NewEvent[]): Promise<void>;
  /** No event, and no refusal. */
  thenNothing(): Promise<void>;
  /** A `CommandRejected`, with this reason, and these `details` where some are given. */
  thenRejected(reason?: string | RegExp, details?: Readonly<Record<string, unknown>>): Promise<void>;
  /** The state after the decision's events. */
  thenState(expected: unknown): Promise<void>;
  /** The events, for checks of one's own. @throws InvalidInput, CommandRejected */
  events(): Promise<readonly NewEvent[]>;
}

/** What has happened in a stream. */
export interface GivenStream {
  /** Runs a command on it; nothing is remembered for the next one. */
  when(command: Command, input: unknown, options?: DecisionOptions): Decision;
  /** The state that the events fold into. Where snapshots of it are kept, also when it is kept and read back after any of the events. */
  thenState<F extends EventFamily, S>(state: StreamState<F, S>, expected: NoInfer<S>): Promise<void>;
}

/**
 * Given what has happened in a stream, says what a command decides, or what the state is. No database; inputs and events are checked by
 * their schemas.
 *
 * @example
 * await givenStream(cart, opened, added).when(confirmShoppingCart, { cartId: 'c1' }).thenEvents(confirmed);
 * await givenStream(cart).when(confirmShoppingCart, { cartId: 'c1' }).thenRejected('There is no such cart.');
 * await givenStream(cart, opened).thenState(cartState, { status: 'Opened' });
 */
export function givenStream<F extends EventFamily>(family: F, ...history: readonly NewEventOf<F>[]): GivenStream {
  const record = async (streamId: string, events: readonly NewEvent[], now?: string) =>
    createInMemoryLog(now === undefined ? {} : { now }).append({ family, streamId, events });
  return {
    when(command, input, options = {}) {
      const { now = '2026-01-01T00:00:00.000Z', metadata = {} } = options;
      const run = async () => {
        const parsed = await command.parse(input);
        const streamId = command.streamOf(parsed);
        const past = await record(streamId, history, now);
        const state = foldFrozen(command.state, past);
        const decided = unchanged(`'decide' of '${command.name}' changed its state or its input`, () =>
          command.decide(deepFreeze(parsed), state, { streamVersion: past.length, metadata, now }),
        );
        const events = await Promise.all(decided.map((event) => validateEvent(command.family, event)));
        return { streamId, events };
      };
      const accepted = async () =>
        run().catch((error: unknown) => {
          if (error instanceof CommandRejected)
            assert.fail(`Expected '${command.name}' to be accepted, but it was rejected: ${error.message}`);
          throw error;
        });
      return {
        events: async () => (await run()).events,
        thenEvents: async (...expected) => assert.deepEqual((await accepted()).events, expected),
        thenNothing: async () => assert.deepEqual((await accepted()).events, []),
        async thenRejected(reason, details) {
          const outcome = await run().catch((error: unknown) => error);
          if (!(outcome instanceof CommandRejected)) {
            if (outcome instanceof Error) throw outcome;
            const { events } = outcome as Awaited<ReturnType<typeof run>>; // what it resolves to
            assert.fail(`Expected '${command.name}' to be rejected, but it led to ${JSON.stringify(events)}.`);
          }
          if (typeof reason === 'string') assert.equal(outcome.message, reason);
          else if (reason) assert.match(outcome.message, reason);
          if (details) assert.deepEqual(outcome.fields, details);
        },
        async thenState(expected) {
          const { streamId, events } = await accepted();
          assert.deepEqual(foldFrozen(command.state, await record(streamId, [...history, ...events], now)), expected);
        },
      };
    },
    async thenState(state, expected) {
      const past = await record('given', history);
      assert.deepEqual(foldFrozen(state, past), expected);
      const { snapshots } = state;
      if (!snapshots) return;
      for (let kept = 0; kept <= past.length; kept++) {
        const snapshot = JSON.parse(snapshots.encode(foldFrozen(state, past.slice(0, kept))));
        assert.deepEqual(
          withoutUndefined(foldFrozen(state, past.slice(kept), snapshots.decode(snapshot))),
          withoutUndefined(expected),
          `The state is another one where a snapshot of it was taken after event ${kept}.`,
        );
      }
    },
  };
}

function foldFrozen(
  declared: StreamState,
  events: readonly RecordedEvent[],
  start: unknown = declared.initial(),
): unknown {
  return events.reduce<unknown>(
    (state, event) =>
      unchanged(
        `The handler of '${event.type}' in a state of ${declared.family.name} changed its state or its event`,
        () => declared.apply(deepFreeze(state), deepFreeze(event)),
      ),
    start,
  );
}

/** Says which code it was that changed what it was given. */
function unchanged<T>(subject: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof TypeError && /read only|not extensible|Cannot (delete|redefine)/.test(cause.message)))
      throw cause;
    throw new assert.AssertionError({ message: `${subject} in place; give new values instead. ${cause.message}` });
  }
}

/** A member that is undefined and one that is not there read the same; JSON keeps none of them. */
function withoutUndefined(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [name, withoutUndefined(part)]));
}
