import assert from 'node:assert/strict';
import { pino } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { NewEvent, RecordedEvent } from '../events/event.ts';
import { beginning } from '../events/global-position.ts';
import type { HandlerResult, Reactor, ReactorContext, StepOptions, StepResult } from '../reactors/reactor.ts';
import { expectSame } from './expect-same.ts';
import { createInMemoryLog, type InMemoryAppend } from './in-memory-log.ts';
import { inChangedAsync, surroundings } from './surroundings.ts';

/** How a step ends: with these events, or with this error, such as a `CommandRejected`. */
export type StepOutcome = readonly NewEvent[] | Error;

/** A command that a reactor executed as a step. */
export interface ExecutedStep {
  readonly command: Command;
  readonly input: unknown;
  /** The name of the step, if the reactor gave one. */
  readonly step?: string;
}

/** What a reactor does with events. Awaiting one of the methods runs its handlers. Each throws an `AssertionError` on a mismatch. */
export interface GivenReaction {
  /** Expects exactly these steps, in this order. */
  thenSteps(...expected: readonly ExecutedStep[]): Promise<void>;
  /** Expects this result for each event that the reactor handles. A handler that returns nothing returns `ack`. */
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

type Outcomes = ReadonlyMap<string, StepOutcome | ((input: unknown, step: string | undefined) => StepOutcome)>;

function withOutcomes(reactor: Reactor, outcomes: Outcomes): GivenReactor {
  return {
    where: (command, outcome) => withOutcomes(reactor, new Map(outcomes).set(command.name, outcome)),
    when(...appends) {
      const run = () => handleAll(reactor, outcomes, appends);
      const accepted = async () => {
        const outcome = await run();
        if (outcome.error !== undefined) throw outcome.error;
        return outcome;
      };
      return {
        steps: async () => (await accepted()).steps,
        thenSteps: async (...expected) => assert.deepEqual(plain((await accepted()).steps), plain(expected)),
        thenResults: async (...expected) => assert.deepEqual((await accepted()).results, expected),
        async thenFails(message) {
          const { error } = await run();
          assert.ok(error !== undefined, `Expected ${reactor.name} to fail, but it handled all events.`);
          const found = error instanceof Error ? error.message : String(error);
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
    },
  };
}

interface Handling {
  readonly steps: readonly ExecutedStep[];
  readonly results: readonly HandlerResult[];
  /** What a handler threw; no later event is handled then. */
  readonly error: unknown;
}

async function handleAll(reactor: Reactor, outcomes: Outcomes, appends: readonly InMemoryAppend[]): Promise<Handling> {
  const log = createInMemoryLog();
  for (const append of appends) await log.append(append);
  const steps: ExecutedStep[] = [];
  const results: HandlerResult[] = [];
  const handled = log.events.filter(({ family, type }) =>
    reactor.filter.some((entry) => entry.family === family && entry.types.includes(type)),
  );
  for (const event of handled) {
    try {
      results.push((await reactor.handle(event, contextOf(reactor, event, outcomes, steps))) || 'ack');
    } catch (error) {
      return { steps, results, error: error ?? new Error(`${reactor.name} threw ${String(error)}.`) };
    }
  }
  return { steps, results, error: undefined };
}

function contextOf(reactor: Reactor, event: RecordedEvent, outcomes: Outcomes, steps: ExecutedStep[]): ReactorContext {
  const names = new Set<string>();
  return {
    signal: new AbortController().signal,
    logger: pino({ level: 'silent' }),
    messageId: `${reactor.name}/${event.id}`,
    attempt: 1,
    async execute(command: Command, input: unknown, { step }: StepOptions = {}): Promise<StepResult> {
      const name = step ?? command.name;
      assert.ok(
        !names.has(name),
        `${reactor.name} executes two steps '${name}' for one event. Name each of them: { step: '…' }.`,
      );
      names.add(name);
      steps.push({ command, input, ...(step === undefined ? {} : { step }) });
      const given = outcomes.get(command.name) ?? [];
      const outcome = typeof given === 'function' ? given(input, step) : given;
      return resultOf(command, await command.parse(input), outcome);
    },
  };
}

async function resultOf(command: Command, parsed: unknown, outcome: StepOutcome): Promise<StepResult> {
  const [stream] = command.streamsOf(parsed);
  if (!(outcome instanceof Error) && stream) {
    const { state, streamId } = stream;
    const events = await createInMemoryLog().append({ family: state.family, streamId, events: outcome });
    return { position: events.at(-1)?.position ?? beginning, streamId, streamVersion: events.length, events };
  }
  throw outcome;
}

/** Commands by their names: a difference is readable. */
function plain(steps: readonly ExecutedStep[]): unknown[] {
  return steps.map(({ command, ...rest }) => ({ command: command.name, ...rest }));
}
