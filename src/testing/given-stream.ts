import assert from 'node:assert/strict';
import type { Command } from '../commands/define-command.ts';
import { CommandRejected } from '../errors.ts';
import type { EventMetadata, NewEvent } from '../events/event.ts';
import { type EventFamily, type NewEventOf, validateEvent } from '../events/event-family.ts';
import { createInMemoryLog } from './in-memory-log.ts';

export interface DecisionOptions {
  /** What `decide` is told is the time. @default '2026-01-01T00:00:00.000Z' */
  readonly now?: string;
  readonly metadata?: EventMetadata;
}

/** What a command has led to; awaiting one of its methods runs it. Each throws an `AssertionError` where it is otherwise. */
export interface Decision {
  /** Exactly these events, in this order. */
  thenEvents(...expected: readonly NewEvent[]): Promise<void>;
  /** No event, and no refusal. */
  thenNothing(): Promise<void>;
  /** A `CommandRejected`, with this reason where one is given. */
  thenRejected(reason?: string | RegExp): Promise<void>;
  /** The events, for checks of one's own. @throws InvalidInput, CommandRejected */
  events(): Promise<readonly NewEvent[]>;
}

/**
 * Given what has happened in a stream, says what a command decides. No database; inputs and events are checked by their schemas.
 *
 * @example
 * await givenStream(cart, opened, added).when(confirmShoppingCart, { cartId: 'c1' }).thenEvents(confirmed);
 * await givenStream(cart).when(confirmShoppingCart, { cartId: 'c1' }).thenRejected('There is no such cart.');
 */
export function givenStream<F extends EventFamily>(family: F, ...history: readonly NewEventOf<F>[]) {
  return {
    when(command: Command, input: unknown, options: DecisionOptions = {}): Decision {
      const decide = async (): Promise<readonly NewEvent[]> => {
        const { now = '2026-01-01T00:00:00.000Z', metadata = {} } = options;
        const parsed = await command.parse(input);
        const past = await createInMemoryLog({ now }).append({
          family,
          streamId: command.streamOf(parsed),
          events: history,
        });
        const state = past.reduce<unknown>(
          (before, event) => command.state.apply(before, event),
          command.state.initial(),
        );
        const decided = command.decide(parsed, state, { streamVersion: past.length, metadata, now });
        return Promise.all(decided.map((event) => validateEvent(command.family, event)));
      };
      return {
        events: decide,
        thenEvents: async (...expected) => assert.deepEqual(await decide(), expected),
        thenNothing: async () => assert.deepEqual(await decide(), []),
        async thenRejected(reason) {
          const outcome = await decide().catch((error: unknown) => error);
          if (!(outcome instanceof CommandRejected)) {
            if (outcome instanceof Error) throw outcome;
            assert.fail(`Expected '${command.name}' to be rejected, but it led to ${JSON.stringify(outcome)}.`);
          }
          if (typeof reason === 'string') assert.equal(outcome.message, reason);
          else if (reason) assert.match(outcome.message, reason);
        },
      };
    },
  };
}
