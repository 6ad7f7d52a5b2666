import assert from 'node:assert/strict';
import type { Command } from '../commands/define-command.ts';
import type { StreamState } from '../commands/define-state.ts';
import { CommandRejected } from '../errors.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from '../events/event.ts';
import { type EventFamily, type NewEventOf, validateEvent } from '../events/event-family.ts';
import { deepFreeze } from '../projections/columns/deep-freeze.ts';
import { createInMemoryLog } from './in-memory-log.ts';

export interface DecisionOptions {
  /** The time that `decide` gets. @default '2026-01-01T00:00:00.000Z' */
  readonly now?: string;
  readonly metadata?: EventMetadata;
}

/**
 * The outcome of a command. Awaiting one of the methods runs the command. Each throws an `AssertionError` on a mismatch, with expected and
 * actual values. State, events and input are frozen, so code that mutates them fails.
 */
export interface Decision {
  /** Expects exactly these events, in this order. */
  thenEvents(...expected: readonly NewEvent[]): Promise<void>;
  /** Expects no event and no rejection. */
  thenNothing(): Promise<void>;
  /** Expects a `CommandRejected` with this reason, and with these `details` if given. */
  thenRejected(reason?: string | RegExp, details?: Readonly<Record<string, unknown>>): Promise<void>;
  /** Expects this state after the decision's events. */
  thenState(expected: unknown): Promise<void>;
  /** Returns the events, for your own checks. @throws InvalidInput, CommandRejected */
  events(): Promise<readonly NewEvent[]>;
}

/** The history of a stream. */
export interface GivenStream {
  /** Runs a command on the history. Each call starts from the same history. */
  when(command: Command, input: unknown, options?: DecisionOptions): Decision;
  /** Expects the state that the events fold into. If the state has snapshots, it also takes and reads back a snapshot after each event. */
  thenState<F extends EventFamily, S>(state: StreamState<F, S>, expected: NoInfer<S>): Promise<void>;
}

/**
 * Given the history of a stream, checks what a command decides, or what the state is. Needs no database. Inputs and events are validated by
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
            const { events } = outcome as Awaited<ReturnType<typeof run>>; // what `run` resolves to
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
          `The state differs if a snapshot of it was taken after event ${kept}.`,
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

/** Reports which code mutated its arguments. */
function unchanged<T>(subject: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof TypeError && /read only|not extensible|Cannot (delete|redefine)/.test(cause.message)))
      throw cause;
    throw new assert.AssertionError({ message: `${subject} in place; return new values instead. ${cause.message}` });
  }
}

/** Removes undefined members: an undefined member and a missing one are equal, and JSON keeps neither. */
function withoutUndefined(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [name, withoutUndefined(part)]));
}
