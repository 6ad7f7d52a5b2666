import { InvalidInput, RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { NewEvent } from '../events/event.ts';
import type { CommandStream } from './command-options.ts';
import type { StreamState } from './define-state.ts';

interface DeclaredCommand {
  readonly name: string;
  /** Whether it was declared with `streams`. */
  readonly several: boolean;
  readonly states: readonly StreamState[];
  /** The declared `emits`; undefined if it may append all types of its families. */
  readonly emits: readonly string[] | undefined;
}

/**
 * Checks what `stream` or `streams` returned.
 *
 * @throws RefoldError `INVALID_DECISION` for what no input explains; InvalidInput for ids that depend on the input.
 */
export function checkStreams(command: DeclaredCommand, returned: unknown): readonly CommandStream[] {
  const streams = command.several ? severalStreams(command, returned) : [oneStream(command, returned)];
  const seen = new Set<string>();
  for (const { state, streamId } of streams) {
    if (streamId === '') throw badInput(command, 'leads to an empty stream id.');
    const stream = `'${streamId}' of ${state.family.name}`;
    if (seen.has(stream)) throw badInput(command, `leads to the stream ${stream} twice.`);
    seen.add(stream);
  }
  if (streams.length === 0) throw badInput(command, 'leads to no stream.');
  return streams;
}

function oneStream(command: DeclaredCommand, returned: unknown): CommandStream {
  if (typeof returned !== 'string')
    throw invalid(command, `'stream' returned ${described(returned)}. Return the id of a stream, a string.`);
  return { state: command.states[0] as StreamState, streamId: returned }; // a command with `stream` has one state
}

function severalStreams(command: DeclaredCommand, returned: unknown): readonly CommandStream[] {
  const wayOut = "Return a list of { state, streamId }, with states of the command's 'states'.";
  if (!Array.isArray(returned)) throw invalid(command, `'streams' returned ${described(returned)}. ${wayOut}`);
  // By index: `map` would skip a hole.
  return Array.from(returned, (one: Partial<CommandStream> | null | undefined, index) => {
    const { state, streamId } = Object(one) as Partial<CommandStream>; // any value has these members, or not
    if (!command.states.includes(state as StreamState))
      throw invalid(command, `'streams' returned at ${index} ${described(one)} without a declared state. ${wayOut}`);
    if (typeof streamId !== 'string')
      throw invalid(command, `'streams' returned at ${index} ${described(streamId)} as 'streamId'. ${wayOut}`);
    return { state: state as StreamState, streamId }; // it is among the declared ones
  });
}

/**
 * Checks what `decide` returned, and returns the events of each stream.
 *
 * @throws RefoldError `INVALID_DECISION`, or `UNKNOWN_EVENT_TYPE` for an event that the stream's family or `emits` does not name.
 */
export function checkDecision(
  command: DeclaredCommand,
  streams: readonly CommandStream[],
  returned: unknown,
): readonly (readonly NewEvent[])[] {
  if (isPromise(returned))
    throw invalid(command, "'decide' returned a promise. 'decide' is synchronous; load asynchronous data in 'load'.");
  if (!command.several) return streams.map((stream) => checkEvents(command, stream, returned, `'decide' returned`));
  if (!Array.isArray(returned)) {
    const wayOut = 'Return a list with the events of each stream, in the order of the streams.';
    throw invalid(command, `'decide' returned ${described(returned)}. ${wayOut}`);
  }
  if (returned.length === 0) return streams.map(() => []);
  if (returned.length !== streams.length) {
    const found = `'decide' returned events for ${returned.length} streams, but the command is about ${streams.length}.`;
    throw invalid(command, `${found} Return one list for each stream, empty if nothing changes.`);
  }
  return streams.map((stream, index) =>
    checkEvents(command, stream, returned[index], `'decide' returned for stream '${stream.streamId}'`),
  );
}

function checkEvents(
  command: DeclaredCommand,
  { state: { family } }: CommandStream,
  returned: unknown,
  found: string,
): readonly NewEvent[] {
  const events: readonly unknown[] = Array.isArray(returned) ? Array.from(returned) : [returned]; // a hole becomes undefined
  for (const event of events) {
    const type: unknown = Object(event).type;
    if (typeof type !== 'string') {
      const what = `${described(event)}${event instanceof Object && !isPromise(event) ? ' without a type' : ''}`;
      const wayOut = 'Return an event, a list of events, or an empty list to change nothing.';
      throw invalid(command, `${found} ${what}. ${wayOut}`);
    }
    if (!family.types.includes(type)) throw unknownType(command, type, family.name, closest(type, family.types));
    if (command.emits && !command.emits.includes(type)) throw notEmitted(command, type);
  }
  return events as readonly NewEvent[]; // each has a declared type; the append validates its payload
}

function unknownType({ name }: DeclaredCommand, type: string, family: string, hint: string): RefoldError {
  return new RefoldError(
    'UNKNOWN_EVENT_TYPE',
    `defineCommand('${name}') decided '${type}', which ${family} does not define.${hint}`,
    { command: name, family, type },
  );
}

/** An undeclared type would reach rows that the mutation's payload does not offer. */
function notEmitted({ name }: DeclaredCommand, type: string): RefoldError {
  return new RefoldError(
    'UNKNOWN_EVENT_TYPE',
    `defineCommand('${name}') decided '${type}', which its 'emits' does not name. Add it there.`,
    { command: name, type },
  );
}

function invalid({ name }: DeclaredCommand, problem: string): RefoldError {
  return new RefoldError('INVALID_DECISION', `defineCommand('${name}'): ${problem}`, { command: name });
}

function badInput({ name }: DeclaredCommand, message: string): InvalidInput {
  return new InvalidInput('BAD_USER_INPUT', `The input of '${name}'`, [{ path: [], message }]);
}

function described(value: unknown): string {
  if (isPromise(value)) return 'a promise';
  if (Array.isArray(value)) return 'a list';
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function isPromise(value: unknown): boolean {
  if (typeof Object(value).then !== 'function') return false;
  // Nobody awaits it, and an unhandled rejection would end the process.
  Promise.resolve(value).catch(() => {});
  return true;
}
