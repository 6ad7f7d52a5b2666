import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { CommandAccess } from '../access.ts';
import { InvalidInput, invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { NewEvent } from '../events/event.ts';
import { type EventFamily, type EventTypeOf, inputIssues } from '../events/event-family.ts';
import type {
  CommandContext,
  CommandOptions,
  CommandStream,
  LoadContext,
  StreamsCommandOptions,
} from './command-options.ts';
import { checkDecision, checkStreams } from './decision.ts';
import { defineState, type StreamState } from './define-state.ts';

/** A declared command, checked and frozen. Created by {@link defineCommand}. */
export interface Command<
  Name extends string = string,
  I extends StandardSchemaV1 = StandardSchemaV1,
  F extends EventFamily = EventFamily,
> {
  readonly kind: 'command';
  readonly name: Name;
  readonly description?: string;
  readonly input: I;
  /** The families of the streams that the command writes to. */
  readonly families: readonly F[];
  /** The states that it may decide on. */
  readonly states: readonly StreamState[];
  /** The event types that the command may append. */
  readonly emits: readonly string[];
  readonly access: CommandAccess | undefined;
  /**
   * Returns the streams that the command decides on: at least one, each once.
   *
   * @throws RefoldError `INVALID_DECISION` if the declaration returned no streams, {@link InvalidInput} if the input leads to ids that no
   * command can use.
   */
  streamsOf(input: unknown): readonly CommandStream[];
  /** Returns what the declaration's `load` resolves to; undefined without one. */
  load(input: unknown, context: LoadContext): Promise<unknown>;
  /**
   * Returns the events to append to each stream of {@link streamsOf}; empty lists if the command changes nothing. `states` are in the same order.
   *
   * @throws CommandRejected to refuse; RefoldError `INVALID_DECISION`, `UNKNOWN_EVENT_TYPE`.
   */
  decide(
    input: unknown,
    states: readonly unknown[],
    streams: readonly CommandStream[],
    context: CommandContext,
  ): readonly (readonly NewEvent[])[];
  /** Returns the input as its schema outputs it. Throws {@link InvalidInput} with the path of each issue. */
  parse(input: unknown): Promise<unknown>;
}

/** The options as the checks read them. Their types belong together: {@link defineCommand} accepts no others. */
interface AnyCommandOptions<Name extends string, I extends StandardSchemaV1> {
  readonly name: Name;
  readonly input: I;
  readonly state?: StreamState | undefined;
  readonly states?: readonly StreamState[] | undefined;
  readonly events?: EventFamily | undefined;
  readonly emits?: readonly string[] | undefined;
  readonly stream?: (input: never) => unknown;
  readonly streams?: (input: never) => unknown;
  readonly load?: ((input: never, context: LoadContext) => unknown) | undefined;
  readonly decide: (input: never, state: never, context: never) => unknown;
  readonly access?: unknown;
  readonly description?: string | undefined;
}

const known = [
  'name',
  'input',
  'state',
  'states',
  'events',
  'emits',
  'stream',
  'streams',
  'load',
  'decide',
  'access',
  'description',
];

/**
 * Declares a command. It becomes a mutation that folds the stream's state, decides, and appends the events at the
 * stream version that the decision is based on. With `streams`, it decides on several streams and appends to all of
 * them or to none.
 *
 * @throws RefoldError `INVALID_DECLARATION` naming what to change.
 * @example
 * const confirm = defineCommand({
 *   name: 'confirmShoppingCart',
 *   input: z.object({ cartId: z.string() }),
 *   state: cartState,
 *   stream: (input) => input.cartId,
 *   decide(input, state, { now }) {
 *     if (state.status !== 'Opened') throw new CommandRejected('Only an open cart can be confirmed.');
 *     return { type: 'ShoppingCartConfirmed', payload: { confirmedAt: now } };
 *   },
 * });
 * @example
 * const transfer = defineCommand({
 *   name: 'transfer',
 *   input: z.object({ from: z.string(), to: z.string(), amount: z.int().positive() }),
 *   states: [accountState],
 *   streams: ({ from, to }) => [
 *     { state: accountState, streamId: from },
 *     { state: accountState, streamId: to },
 *   ],
 *   decide({ amount }, [from]) {
 *     if (from.balance < amount) throw new CommandRejected('The account does not hold that much.');
 *     return [{ type: 'Withdrawn', payload: { amount } }, { type: 'Deposited', payload: { amount } }];
 *   },
 * });
 */
export function defineCommand<
  const Name extends string,
  const I extends StandardSchemaV1,
  const T extends readonly StreamState[],
  const R extends readonly CommandStream<T[number]>[],
  L = undefined,
  const E extends EventTypeOf<T[number]['family']> = EventTypeOf<T[number]['family']>,
>(options: StreamsCommandOptions<Name, I, T, R, L, E>): Command<Name, I, T[number]['family']>;
export function defineCommand<
  const Name extends string,
  const I extends StandardSchemaV1,
  F extends EventFamily,
  S,
  L = undefined,
  const E extends EventTypeOf<F> = EventTypeOf<F>,
>(options: CommandOptions<Name, I, F, S, L, E>): Command<Name, I, F>;
export function defineCommand<Name extends string, I extends StandardSchemaV1>(
  options: AnyCommandOptions<Name, I>,
): Command<Name, I> {
  const subject = `defineCommand('${options.name}')`;
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalidDeclaration(subject, `unknown option '${name}'.${closest(name, known)}`);
  }
  if (!/^[a-z][A-Za-z0-9]{0,99}$/.test(options.name))
    throw invalidDeclaration(subject, `a command is named in camelCase, such as 'confirmShoppingCart'.`);
  if (options.input?.['~standard']?.version !== 1)
    throw invalidDeclaration(
      subject,
      `'input' is no Standard Schema validator; use zod, valibot, arktype or another that implements it.`,
    );
  const states = statesOf(subject, options);
  checkFunctions(subject, options);
  const families = Object.freeze([...new Set(states.map(({ family }) => family))]);
  const emits = emittedTypes(subject, families, options.emits);
  checkAccess(subject, options.access);
  const declared = {
    name: options.name,
    several: options.streams !== undefined,
    states,
    emits: options.emits && emits,
  };
  // Called with this command's parsed input, its states and what its `load` returned only.
  const { stream, streams, load, decide } = options as unknown as {
    readonly [Option in 'stream' | 'streams' | 'load' | 'decide']: (...args: unknown[]) => unknown;
  };
  return Object.freeze({
    kind: 'command',
    name: options.name,
    ...(options.description === undefined ? {} : { description: options.description }),
    input: options.input,
    families,
    states,
    emits,
    access: options.access as CommandAccess | undefined, // called with this command's parsed input only
    streamsOf: (input: unknown) => checkStreams(declared, declared.several ? streams(input) : stream(input)),
    load: async (input: unknown, context: LoadContext) => (options.load ? load(input, context) : undefined),
    decide(input: unknown, folded: readonly unknown[], on: readonly CommandStream[], context: CommandContext) {
      const { streamVersions, ...shared } = context;
      const decided = declared.several
        ? decide(input, folded, context)
        : decide(input, folded[0], { ...shared, streamVersion: streamVersions[0] });
      return checkDecision(declared, on, decided);
    },
    async parse(input: unknown) {
      const result = await options.input['~standard'].validate(input);
      if (result.issues)
        throw new InvalidInput('BAD_USER_INPUT', `The input of '${options.name}'`, inputIssues(result.issues));
      return result.value;
    },
  } satisfies Command<Name, I>);
}

/** Returns the states that the command folds. @throws RefoldError `INVALID_DECLARATION` */
function statesOf(subject: string, options: AnyCommandOptions<string, StandardSchemaV1>): readonly StreamState[] {
  const { state, states, events, streams } = options;
  if (streams !== undefined) {
    if (state || events || options.stream)
      throw invalidDeclaration(subject, `'streams' goes with 'states'; remove 'state', 'events' and 'stream'.`);
    if (!Array.isArray(states) || states.length === 0 || states.some((one) => one?.kind !== 'stream-state'))
      throw invalidDeclaration(
        subject,
        `give 'states', a list of what defineState(events, initial, handlers) creates.`,
      );
    return Object.freeze([...states]);
  }
  if (states !== undefined)
    throw invalidDeclaration(subject, `'states' goes with 'streams'; give 'state' with 'stream'.`);
  const one = state ?? (events && defineState(events, () => undefined, {}));
  if (one?.kind !== 'stream-state' || (state && events)) {
    throw invalidDeclaration(
      subject,
      `give 'state', created with defineState(events, initial, handlers), or 'events' if the decision needs no state.`,
    );
  }
  return Object.freeze([one]);
}

function checkFunctions(subject: string, options: AnyCommandOptions<string, StandardSchemaV1>): void {
  for (const name of [options.streams === undefined ? 'stream' : 'streams', 'decide'] as const) {
    if (typeof options[name] !== 'function') throw invalidDeclaration(subject, `'${name}' is a function.`);
  }
  if (options.load !== undefined && typeof options.load !== 'function')
    throw invalidDeclaration(subject, `'load' is a function.`);
}

function checkAccess(subject: string, access: unknown): void {
  if (access === undefined || access === 'public' || access === 'authenticated' || typeof access === 'function') return;
  throw invalidDeclaration(
    subject,
    `'access' is 'public', 'authenticated' or a function from viewer and input to true or false.`,
  );
}

/** Returns the declared types, or all types of the families. @throws RefoldError `INVALID_DECLARATION` */
function emittedTypes(subject: string, families: readonly EventFamily[], given?: readonly string[]): readonly string[] {
  const types = [...new Set(families.flatMap((family) => family.types))];
  const [only] = families;
  if (given === undefined) return only && families.length === 1 ? only.types : Object.freeze(types);
  const names = families.map(({ name }) => name).join(', ');
  if (!Array.isArray(given) || given.length === 0)
    throw invalidDeclaration(subject, `'emits' is a list of event types of ${names}, with at least one.`);
  const unknown = given.find((type) => !types.includes(type));
  if (unknown !== undefined)
    throw invalidDeclaration(
      subject,
      `'emits' names '${unknown}', which ${names} does not define.${closest(unknown, types)}`,
    );
  return Object.freeze([...given]);
}
