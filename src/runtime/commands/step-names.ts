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
  /** The key of its command's execution without a name: the step may have run before it got its name. */
  readonly earlierKey: string | undefined;
  /** The earlier keys that steps of this handling have taken over. No outcome is taken twice. */
  readonly takenOver: Set<string>;
}

/** Names the steps of one handling of an event. Each throws RefoldError `INVALID_STEP` if a name is missing, empty, too long, or used before. */
export interface StepNames {
  readonly reactor: string;
  /** A named step keeps its key if its command is renamed. A step without a name is the only execution of its command. */
  ofCommand(command: Pick<Command, 'name'>, given?: string): Step;
  /** @param unnamed the name if none is given */
  ofWait(kind: 'wait.for' | 'wait.until', unnamed: string, given?: string): Step;
  /** The error of a step that can't run. */
  invalid(problem: string): RefoldError;
}

// Long enough for words, and far below the 1 KiB of a key.
const longestName = 200;

export function createStepNames(
  { name: reactor, commands }: Pick<Reactor, 'name' | 'commands'>,
  event: RecordedEvent,
): StepNames {
  const names = new Set<string>();
  /** For each executed command, whether its last execution has a name. */
  const executions = new Map<string, boolean>();
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
      const isNamed = given !== undefined;
      const isAmbiguous = executions.has(command) && !(isNamed && executions.get(command));
      executions.set(command, isNamed);
      const name = given ?? command;
      const problem = nameProblem(given) ?? (isAmbiguous && unnamed(command));
      if (problem) throw invalid(problem);
      claimName(name);
      const unnamedKey = `${command}:${place}/1`;
      const keys = isNamed
        ? { key: `:${place}/${name}`, earlierKey: unnamedKey }
        : { key: unnamedKey, earlierKey: undefined };
      return { reactor, event, command, name, takenOver, ...keys };
    },
    ofWait(command, unnamed, given) {
      const problem = nameProblem(given);
      if (problem) throw invalid(problem);
      const name = given ?? unnamed;
      claimName(name);
      // refold.append_keys gets the outcome under the same key in decide-waits.ts.
      return { reactor, event, command, name, takenOver, key: `:${place}/${name}`, earlierKey: undefined };
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
