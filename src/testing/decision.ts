import assert from 'node:assert/strict';
import type { CommandStream } from '../commands/command-options.ts';
import type { Command } from '../commands/define-command.ts';
import type { StreamState } from '../commands/define-state.ts';
import { CommandRejected } from '../errors.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from '../events/event.ts';
import { validateEvent } from '../events/event-family.ts';
import { invalidUpcast, unreadable } from '../events/read-payload.ts';
import { deepFreeze } from '../projections/columns/deep-freeze.ts';
import { createInMemoryLog, type InMemoryAppend, type InMemoryLog } from './in-memory-log.ts';

export interface DecisionOptions {
  /** The time that `load` and `decide` get. @default '2026-01-01T00:00:00.000Z' */
  readonly now?: string;
  readonly metadata?: EventMetadata;
  /** What `decide` gets as `loaded`. If it is given, the command's `load` is not called. @default what `load` resolves to */
  readonly loaded?: unknown;
}

/**
 * The outcome of a command. Awaiting one of the methods runs the command. Each throws an `AssertionError` on a mismatch, with expected and
 * actual values. State, events and input are frozen, so code that mutates them fails.
 */
export interface Decision {
  /** Expects exactly these events, in this order; of a command on several streams, those of all streams. */
  thenEvents(...expected: readonly NewEvent[]): Promise<void>;
  /** Expects exactly these events of each stream, in the order of the command's streams. */
  thenStreams(...expected: readonly (readonly NewEvent[])[]): Promise<void>;
  /** Expects no event and no rejection. */
  thenNothing(): Promise<void>;
  /** Expects a `CommandRejected` with this reason, and with these `details` if given. */
  thenRejected(reason?: string | RegExp, details?: Readonly<Record<string, unknown>>): Promise<void>;
  /** Expects this state after the decision's events; of a command on several streams, the state of each. */
  thenState(...expected: readonly unknown[]): Promise<void>;
  /** Returns the events, for your own checks. @throws InvalidInput, CommandRejected */
  events(): Promise<readonly NewEvent[]>;
}

/** Runs a command on the history that `given` returns for its streams. */
export function decisionOf(
  command: Command,
  input: unknown,
  { now = '2026-01-01T00:00:00.000Z', metadata = {}, ...options }: DecisionOptions,
  given: (streams: readonly CommandStream[]) => readonly InMemoryAppend[],
): Decision {
  const run = async () => {
    const parsed = await command.parse(input);
    const streams = command.streamsOf(parsed);
    const log = createInMemoryLog({ now });
    for (const append of given(streams)) await log.append(append);
    const loaded = 'loaded' in options ? options.loaded : await command.load(parsed, { metadata, now });
    const streamVersions = streams.map(({ state, streamId }) => log.stream(state.family, streamId).length);
    const decided = unchanged(`'decide' of '${command.name}' changed its state or its input`, () =>
      command.decide(deepFreeze(parsed), statesIn(log, streams), streams, { streamVersions, metadata, now, loaded }),
    );
    const events = await Promise.all(
      streams.map(({ state }, index) =>
        Promise.all((decided[index] ?? []).map((event) => validateEvent(state.family, event))),
      ),
    );
    return { streams, log, events };
  };
  const accepted = async () =>
    run().catch((error: unknown) => {
      if (error instanceof CommandRejected)
        assert.fail(`Expected '${command.name}' to be accepted, but it was rejected: ${error.message}`);
      throw error;
    });
  return {
    events: async () => (await run()).events.flat(),
    thenEvents: async (...expected) => assert.deepEqual((await accepted()).events.flat(), expected),
    thenStreams: async (...expected) => assert.deepEqual((await accepted()).events, expected),
    thenNothing: async () => assert.deepEqual((await accepted()).events.flat(), []),
    async thenRejected(reason, details) {
      const outcome = await run().catch((error: unknown) => error);
      if (!(outcome instanceof CommandRejected)) {
        if (outcome instanceof Error) throw outcome;
        const { events } = outcome as Awaited<ReturnType<typeof run>>; // what `run` resolves to
        assert.fail(`Expected '${command.name}' to be rejected, but it led to ${JSON.stringify(events.flat())}.`);
      }
      if (typeof reason === 'string') assert.equal(outcome.message, reason);
      else if (reason) assert.match(outcome.message, reason);
      if (details) assert.deepEqual(outcome.fields, details);
    },
    async thenState(...expected) {
      const { streams, log, events } = await accepted();
      for (const [index, { state, streamId }] of streams.entries())
        await log.append({ family: state.family, streamId, events: events[index] ?? [] });
      assert.deepEqual(statesIn(log, streams), expected);
    },
  };
}

function statesIn(log: InMemoryLog, streams: readonly CommandStream[]): unknown[] {
  return streams.map(({ state, streamId }) => foldFrozen(state, log.stream(state.family, streamId)));
}

/** Folds with frozen states and events. */
export function foldFrozen(
  declared: StreamState,
  events: readonly RecordedEvent[],
  start: unknown = declared.initial(),
): unknown {
  return events.reduce<unknown>((state, event) => {
    const problem = unreadable(event) ? null : invalidUpcast([declared.family], event);
    if (problem !== null)
      assert.fail(`What the upcasters of '${event.type}' return does not match its schema: ${problem}`);
    return unchanged(
      `The handler of '${event.type}' in a state of ${declared.family.name} changed its state or its event`,
      () => declared.apply(deepFreeze(state), unreadable(event) ? event : deepFreeze(event)),
    );
  }, start);
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
