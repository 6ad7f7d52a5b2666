import assert from 'node:assert/strict';
import { pino } from 'pino';
import type { Command } from '../commands/define-command.ts';
import { inputFingerprint } from '../commands/input-fingerprint.ts';
import type { NewEvent, RecordedEvent } from '../events/event.ts';
import { beginning } from '../events/global-position.ts';
import type { HandlerResult, Reactor, ReactorContext, StepOptions, StepResult } from '../reactors/reactor.ts';
import { stepChanged } from '../runtime/commands/execute-step.ts';
import { createStepNames, type Step } from '../runtime/commands/step-names.ts';
import { createHandlerWaits, Suspended } from '../runtime/reactors/handler-waits.ts';
import type { Wait, WaitOutcome } from '../store/reactors/reactor-instances.ts';
import { createInMemoryLog, type InMemoryAppend } from './in-memory-log.ts';

/** How a step ends: with these events, or with this error, such as a `CommandRejected`. */
export type StepOutcome = readonly NewEvent[] | Error;

/** The outcomes that a test gives to steps, by command. */
export type GivenOutcomes = ReadonlyMap<
  string,
  StepOutcome | ((input: unknown, step: string | undefined) => StepOutcome)
>;

/** A command that a reactor executed as a step. */
export interface ExecutedStep {
  readonly command: Command;
  readonly input: unknown;
  /** The name of the step, if the reactor gave one. */
  readonly step?: string;
}

/** What happens in a test: events are appended, or time passes. */
export type TestMoment = { readonly appends: readonly InMemoryAppend[] } | { readonly milliseconds: number };

export interface ReactorRun {
  /** In the order of their first execution. */
  readonly steps: readonly ExecutedStep[];
  readonly results: readonly HandlerResult[];
  /** The waits under way, in the order of their events. */
  readonly waits: readonly Wait[];
  /** What a handler threw; nothing happens after it. */
  readonly error: unknown;
}

/** The time when a test begins. */
export const testBegins = Date.UTC(2026, 0, 1);

/** Handles the events of a test, in order. */
export async function runReactor(
  reactor: Reactor,
  outcomes: GivenOutcomes,
  moments: readonly TestMoment[],
): Promise<ReactorRun> {
  const simulation = new Simulation(reactor, outcomes);
  let error: unknown;
  try {
    for (const moment of moments) {
      if ('appends' in moment) await simulation.append(moment.appends);
      else await simulation.pass(moment.milliseconds);
    }
  } catch (thrown) {
    error = thrown ?? new Error(`${reactor.name} threw ${String(thrown)}.`);
  }
  const { steps, results, waits } = simulation;
  return { steps, results, waits, error };
}

/** The handling of one event, until its handler has ended. */
interface Handling {
  readonly event: RecordedEvent;
  /** The stored outcomes of steps, by name. */
  readonly stored: Map<
    string,
    { readonly input: string; readonly command: string; readonly result: Promise<StepResult> }
  >;
  readonly waits: Map<string, StoredWait>;
  /** The wait under way. */
  current: StoredWait | undefined;
}

interface StoredWait extends Wait {
  /** Null if it waits without end. */
  readonly due: number | null;
  outcome?: WaitOutcome | undefined;
}

class Simulation {
  readonly steps: ExecutedStep[] = [];
  readonly results: HandlerResult[] = [];
  readonly #reactor: Reactor;
  readonly #outcomes: GivenOutcomes;
  readonly #log = createInMemoryLog({ now: () => new Date(this.#now).toISOString() });
  #now = testBegins;
  #handlings: Handling[] = [];

  constructor(reactor: Reactor, outcomes: GivenOutcomes) {
    this.#reactor = reactor;
    this.#outcomes = outcomes;
  }

  get waits(): Wait[] {
    return this.#handlings.flatMap(({ current }) => current ?? []);
  }

  async append(appends: readonly InMemoryAppend[]): Promise<void> {
    const before = this.#log.events.length;
    for (const append of appends) await this.#log.append(append);
    for (const event of this.#log.events.slice(before)) {
      await this.#wake();
      const { handled } = this.#reactor;
      if (!handled.some(({ family, types }) => family === event.family && types.includes(event.type))) continue;
      const handling: Handling = { event, stored: new Map(), waits: new Map(), current: undefined };
      this.#handlings.push(handling);
      await this.#handle(handling);
    }
  }

  /** Moves the clock from one due time to the next. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    for (;;) {
      const due = this.#handlings.flatMap(({ current }) => current?.due ?? []).filter((time) => time <= end);
      if (due.length === 0) break;
      this.#now = Math.max(this.#now, Math.min(...due));
      await this.#wake();
    }
    this.#now = end;
  }

  async #wake(): Promise<void> {
    for (const handling of [...this.#handlings])
      if (handling.current && this.#decide(handling, handling.current)) await this.#handle(handling);
  }

  async #handle(handling: Handling): Promise<void> {
    handling.current = undefined;
    const limited = new AbortController();
    const ended = new Promise<never>((_, reject) => {
      limited.signal.addEventListener('abort', () => reject(limited.signal.reason), { once: true });
    });
    const { context, close } = this.#contextOf(handling, limited);
    const handle = async () => {
      const result = await this.#reactor.handle(handling.event, context);
      await close();
      return result;
    };
    try {
      this.results.push((await Promise.race([ended, handle()])) || 'ack');
    } catch (error) {
      if (error instanceof Suspended) return;
      throw error;
    } finally {
      await close();
    }
    this.#handlings = this.#handlings.filter((one) => one !== handling);
  }

  #contextOf(handling: Handling, limited: AbortController): { context: ReactorContext; close: () => Promise<void> } {
    const { signal } = limited;
    const reactor = this.#reactor;
    const { event } = handling;
    const names = new Set<string>();
    const handlerWaits = createHandlerWaits({
      event,
      awaits: reactor.awaits,
      names: createStepNames(reactor, event),
      store: { outcomeOf: async (_, step, wait) => this.#outcomeOf(handling, step, wait) },
      log: { readAt: async (position) => this.#log.events.find((one) => one.position === position) },
      signal,
      end: (reason) => limited.abort(reason),
    });
    const context: ReactorContext = {
      signal,
      logger: pino({ level: 'silent' }),
      messageId: `${reactor.name}/${event.id}`,
      attempt: 1,
      wait: handlerWaits.waits,
      stateAfter: async (declared, streamId = event.streamId) =>
        this.#log.events
          .filter((one) => one.position <= event.position)
          .filter((one) => one.family === declared.family.name && one.streamId === streamId)
          .reduce((state, one) => declared.apply(state, one), declared.initial()),
      execute: async (command: Command, input: unknown, { step }: StepOptions = {}) => {
        signal.throwIfAborted();
        const name = step ?? command.name;
        assert.ok(
          !names.has(name),
          `${reactor.name} executes two steps '${name}' for one event. Name each of them: { step: '…' }.`,
        );
        names.add(name);
        return this.#execute(handling, command, input, step);
      },
    };
    return { context, close: handlerWaits.close };
  }

  #execute(
    { event, stored }: Handling,
    command: Command,
    input: unknown,
    step: string | undefined,
  ): Promise<StepResult> {
    const name = step ?? command.name;
    const fingerprint = inputFingerprint(input);
    const before = stored.get(name);
    if (before) {
      if (before.input === fingerprint) return before.result;
      throw stepChanged({ reactor: this.#reactor.name, event, name, command: command.name }, before.command);
    }
    this.steps.push({ command, input, ...(step === undefined ? {} : { step }) });
    const given = this.#outcomes.get(command.name) ?? [];
    const result = command
      .parse(input)
      .then((parsed) => resultOf(command, parsed, typeof given === 'function' ? given(input, step) : given));
    stored.set(name, { input: fingerprint, command: command.name, result });
    return result;
  }

  #outcomeOf(handling: Handling, step: Step, wait: Wait): WaitOutcome | undefined {
    const before = handling.waits.get(step.name);
    if (before && before.work !== wait.work) throw stepChanged(step, step.command);
    const { until, timeout } = wait;
    const due = until !== null ? Date.parse(until) : timeout !== null ? this.#now + timeout : null;
    const stored = before ?? { ...wait, received: [...wait.received], due };
    handling.waits.set(step.name, stored);
    const outcome = this.#decide(handling, stored);
    if (!outcome) handling.current = stored;
    return outcome;
  }

  #decide({ event }: Handling, wait: StoredWait): WaitOutcome | undefined {
    const { types, key, received, due } = wait;
    const found = this.#log.events.find(
      (one) =>
        one.position > event.position &&
        types.includes(this.#reactor.awaits.get(one.type) ?? '') &&
        this.#reactor.awaitedKeyOf(one) === key &&
        !received.includes(one.position) &&
        (due === null || Date.parse(one.recordedAt) <= due),
    );
    if (found) wait.outcome ??= { kind: 'event', position: found.position.toString(), id: found.id };
    else if (due !== null && due <= this.#now) wait.outcome ??= { kind: 'over' };
    return wait.outcome;
  }
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
