import assert from 'node:assert/strict';
import type { Command } from '../commands/define-command.ts';
import type { HandlerResult, Reactor } from '../reactors/reactor.ts';
import type { Wait } from '../store/reactors/reactor-instances.ts';
import { reasonOf } from '../thrown.ts';
import { expectSame } from './expect-same.ts';
import type { InMemoryAppend } from './in-memory-log.ts';
import { type ExecutedStep, type GivenOutcomes, runReactor, type StepOutcome, type TestMoment } from './reactor-run.ts';
import { inChangedAsync, surroundings } from './surroundings.ts';

export type { ExecutedStep, StepOutcome } from './reactor-run.ts';

/** A wait that a handler has not come out of: as its arguments say. */
export type ExpectedWait =
  | { readonly for: string | readonly string[]; readonly key: string; readonly timeout?: number }
  | { readonly until: Date | string };

/**
 * What a reactor does with events. A test begins at `2026-01-01T00:00:00Z`, and its clock moves only by {@link whenTimePasses}. Awaiting one of the
 * methods runs its handlers. Each throws an `AssertionError` on a mismatch.
 */
export interface GivenReaction {
  /** Moves the clock: waits whose time has come are over, in the order of their times. */
  whenTimePasses(milliseconds: number): GivenReaction;
  /** Appends further events: the reactor handles them, and waits for them are over. Events of steps are not among them. */
  whenEvents(...appends: readonly InMemoryAppend[]): GivenReaction;
  /** Expects exactly these waits to be under way, in the order of the events that are handled. */
  thenWaits(...expected: readonly ExpectedWait[]): Promise<void>;
  /** Expects exactly these steps, in this order. */
  thenSteps(...expected: readonly ExecutedStep[]): Promise<void>;
  /** Expects this result for each event whose handler has ended. A handler that returns nothing returns `ack`. */
  thenResults(...expected: readonly HandlerResult[]): Promise<void>;
  /** Expects that a handler throws an error with this message. */
  thenFails(message?: string | RegExp): Promise<void>;
  /**
   * Expects the same steps with the same inputs when the events are handled again, with a moved clock, in other time zones and in other languages.
   * A workflow continues after a crash by running again from its start, so its steps must not depend on these.
   */
  thenReplayable(): Promise<void>;
  /** Returns the steps, for your own checks. */
  steps(): Promise<readonly ExecutedStep[]>;
}

export interface GivenReactor {
  /**
   * Sets how the steps of a command end, instead of accepted without an event. A function receives the input and the name of the step. The events
   * are recorded in the command's first stream.
   */
  where(
    command: Command,
    outcome: StepOutcome | ((input: unknown, step: string | undefined) => StepOutcome),
  ): GivenReactor;
  /** Handles these events one after the other, as far as the reactor handles their types. Each call starts from the beginning. */
  when(...appends: readonly InMemoryAppend[]): GivenReaction;
}

/**
 * Tests a reactor or a workflow without a database. Commands are not decided: they are recorded, and end as the test says. Their inputs are
 * validated, and the payloads of events.
 *
 * @example
 * await givenReactor(moneyTransfer)
 *   .where(withdraw, new CommandRejected('Not enough.'))
 *   .when({ family: transfer, streamId: 't1', events: [started] })
 *   .thenSteps({ command: withdraw, input: { accountId: 'a', amount: 5 } }, { command: fail, input: { transferId: 't1' } });
 */
export function givenReactor(reactor: Reactor): GivenReactor {
  return withOutcomes(reactor, new Map());
}

function withOutcomes(reactor: Reactor, outcomes: GivenOutcomes): GivenReactor {
  return {
    where: (command, outcome) => withOutcomes(reactor, new Map(outcomes).set(command.name, outcome)),
    when: (...appends) => reaction(reactor, outcomes, [{ appends }]),
  };
}

function reaction(reactor: Reactor, outcomes: GivenOutcomes, moments: readonly TestMoment[]): GivenReaction {
  const run = () => runReactor(reactor, outcomes, moments);
  const accepted = async () => {
    const outcome = await run();
    if (outcome.error !== undefined) throw outcome.error;
    return outcome;
  };
  return {
    whenTimePasses: (milliseconds) => reaction(reactor, outcomes, [...moments, { milliseconds }]),
    whenEvents: (...appends) => reaction(reactor, outcomes, [...moments, { appends }]),
    steps: async () => (await accepted()).steps,
    thenSteps: async (...expected) => assert.deepEqual(plain((await accepted()).steps), plain(expected)),
    thenResults: async (...expected) => assert.deepEqual((await accepted()).results, expected),
    thenWaits: async (...expected) =>
      assert.deepEqual(
        (await accepted()).waits.map(plainWait),
        expected.map((wait) => expectedWait(reactor, wait)),
      ),
    async thenFails(message) {
      const { error } = await run();
      assert.ok(error !== undefined, `Expected ${reactor.name} to fail, but it handled all events.`);
      const found = reasonOf(error);
      if (typeof message === 'string') assert.equal(found, message);
      else if (message) assert.match(found, message);
    },
    async thenReplayable() {
      const once = plain((await accepted()).steps);
      for (const surrounding of surroundings) {
        const { steps } = await inChangedAsync(surrounding, accepted);
        const message = `${reactor.name} executes other steps ${surrounding.when}. ${surrounding.wayOut}`;
        expectSame(plain(steps), once, message);
      }
    },
  };
}

/** Commands by their names: a difference is readable. */
function plain(steps: readonly ExecutedStep[]): unknown[] {
  return steps.map(({ command, ...rest }) => ({ command: command.name, ...rest }));
}

function plainWait({ types, key, until, timeout }: Wait): unknown {
  if (until !== null) return { until };
  return { for: types, key, ...(timeout === null ? {} : { timeout }) };
}

function expectedWait({ awaits }: Reactor, expected: ExpectedWait): unknown {
  if ('until' in expected) return { until: new Date(expected.until).toISOString() };
  return { ...expected, for: [expected.for].flat().map((type) => awaits.get(type) ?? type) };
}
