import type { Command } from '../../commands/define-command.ts';
import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { Reactor } from '../../reactors/reactor.ts';

/** A step of a workflow: one execution of a command, or one wait, of a reactor for one event. */
export interface Step {
  readonly reactor: string;
  readonly event: RecordedEvent;
  /** Of a wait: `wait.for` or `wait.until`. */
  readonly command: string;
  /** The given name, or the default. */
  readonly name: string;
  /** The outcome is stored under this key. */
  readonly key: string;
  /** Where else the outcome may be: the step may have run before it got its name. */
  readonly earlierKeys: readonly EarlierKey[];
  /** The earlier keys that steps of this handling have taken over, so that no outcome is taken twice. */
  readonly takenOver: Set<string>;
}

/** Names the steps of one handling of an event. Each throws RefoldError `INVALID_STEP` if a name is missing, empty, too long, or used before. */
export interface StepNames {
  readonly reactor: string;
  /** A named step keeps its key if its command is renamed. An unnamed one has the key that it always had, which is the number 1. */
  ofCommand(command: Pick<Command, 'name'>, given?: string): Step;
  /** @param unnamed the name if none is given */
  ofWait(kind: 'wait.for' | 'wait.until', unnamed: string, given?: string): Step;
  /** The error of a step that can't run. */
  invalid(problem: string): RefoldError;
}

export interface EarlierKey {
  readonly key: string;
  /** Whether an outcome counts that was stored before steps remembered their work. */
  readonly withoutWork: boolean;
}

// Long enough for words, and far below the 1 KiB of a key.
const longestName = 200;

export function createStepNames(
  { name: reactor, commands }: Pick<Reactor, 'name' | 'commands'>,
  event: RecordedEvent,
): StepNames {
  const names = new Set<string>();
  const executions = new Map<string, { readonly count: number; readonly isNamed: boolean }>();
  const takenOver = new Set<string>();
  const place = `${reactor}/${event.id}`;
  const invalid = (problem: string) => invalidStep(reactor, event, problem);
  const claimName = (name: string) => {
    if (names.has(name)) throw invalid(`two steps are named '${name}'. Give each step a name of its own.`);
    names.add(name);
  };
  return {
    reactor,
    invalid,
    ofCommand({ name: command }, given) {
      if (commands?.every((one) => one.name !== command))
        throw invalid(`the 'commands' of the reactor do not name '${command}'. Add it there.`);
      const before = executions.get(command);
      const call = (before?.count ?? 0) + 1;
      executions.set(command, { count: call, isNamed: given !== undefined });
      const name = given ?? command;
      const problem = nameProblem(given) ?? (before && (given === undefined || !before.isNamed) && unnamed(command));
      if (problem) throw invalid(problem);
      claimName(name);
      const keyOf = (step: string | number) => `${command}:${place}/${step}`;
      const step = { reactor, event, command, name, takenOver };
      if (given === undefined) return { ...step, key: keyOf(1), earlierKeys: [] };
      // Before outcomes had fingerprints, the command's name was part of every key, and unnamed executions were numbered.
      const earlierKeys = [
        { key: keyOf(name), withoutWork: true },
        { key: keyOf(call), withoutWork: true },
        { key: keyOf(1), withoutWork: call === 1 },
      ];
      return { ...step, key: `:${place}/${name}`, earlierKeys };
    },
    ofWait(command, unnamed, given) {
      const problem = nameProblem(given);
      if (problem) throw invalid(problem);
      const name = given ?? unnamed;
      claimName(name);
      // refold.append_keys gets the outcome under the same key in decide-waits.ts.
      return { reactor, event, command, name, takenOver, key: `:${place}/${name}`, earlierKeys: [] };
    },
  };
}

function nameProblem(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && given.trim() !== '' && given.length <= longestName && !/\p{Cc}/u.test(given))
    return undefined;
  const found = typeof given === 'string' ? `'${given.slice(0, 40)}'` : String(given);
  return `'step' is a name of 1 to ${longestName} characters, such as 'charge'; found ${found}.`;
}

function unnamed(command: string): string {
  return `'${command}' is executed more than once, and not every execution has a name. Name each of them: execute(${command}, input, { step: 'first' }).`;
}

function invalidStep(reactor: string, event: RecordedEvent, problem: string): RefoldError {
  const { type, streamId, position, id } = event;
  return new RefoldError(
    'INVALID_STEP',
    `${reactor}: a step of '${type}' at position ${position} (stream '${streamId}') can't run: ${problem}`,
    { reactor, streamId, position: position.toString(), eventId: id },
  );
}
