import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { CommandAccess } from '../access.ts';
import { InvalidInput, invalidDeclaration, RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { EventMetadata, NewEvent } from '../events/event.ts';
import { type EventFamily, type EventTypeOf, inputIssues, type NewEventOf } from '../events/event-family.ts';
import { defineState, type StreamState } from './define-state.ts';

/** What `decide` receives beside input and state. */
export interface DecideContext {
  /** The stream version up to which the state is folded; 0 if the stream does not exist. */
  readonly streamVersion: number;
  readonly metadata: EventMetadata;
  /** The time of the decision, ISO 8601 UTC. Use it instead of the clock, and tests can set the time. */
  readonly now: string;
}

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
  readonly family: F;
  /** The event types that the command may append. */
  readonly emits: readonly string[];
  readonly state: StreamState<F>;
  readonly access: CommandAccess | undefined;
  /** Returns the id of the stream that the command writes to. */
  streamOf(input: unknown): string;
  /** Returns the events to append; an empty list if the command changes nothing. Throws `CommandRejected` to refuse. */
  decide(input: unknown, state: unknown, context: DecideContext): readonly NewEvent[];
  /** Returns the input as its schema outputs it. Throws {@link InvalidInput} with the path of each issue. */
  parse(input: unknown): Promise<unknown>;
}

// A conditional type, not an index: TypeScript must infer `E` from `emits` alone, not from what `decide` returns.
type EmittedBy<F extends EventFamily, E> = Extract<NewEventOf<F>, { readonly type: E }>;

export interface CommandOptions<
  Name extends string,
  I extends StandardSchemaV1,
  F extends EventFamily,
  S,
  E extends EventTypeOf<F> = EventTypeOf<F>,
> {
  /** camelCase; becomes the name of the mutation. */
  readonly name: Name;
  /** Any Standard Schema validator. Its JSON Schema becomes the GraphQL input type. */
  readonly input: I;
  /** Folds the stream's events into the state that `decide` receives. Give `events` instead if the decision needs no state. */
  readonly state?: StreamState<F, S>;
  /** The family of the events that `decide` returns. Give it instead of `state`. */
  readonly events?: F;
  /**
   * The event types that `decide` may return. Any other type is a compile error and, at run time, `UNKNOWN_EVENT_TYPE`. The mutation's payload
   * offers the rows of the projections that handle one of these types. Declare it if other projections handle other events of the family.
   * @default all types of the family
   */
  readonly emits?: readonly E[];
  /** Returns the id of the stream that the command writes to. */
  readonly stream: (input: StandardSchemaV1.InferOutput<I>) => string;
  /** A pure function: it runs again if another command changed the stream first. */
  readonly decide: (
    input: StandardSchemaV1.InferOutput<I>,
    state: S,
    context: DecideContext,
  ) => EmittedBy<F, E> | readonly EmittedBy<F, E>[];
  /**
   * Who may run the command over GraphQL. `execute` in the program itself checks nothing. A function receives the viewer and the parsed input.
   * @default 'authenticated' if the configuration has `auth`, else 'public'
   */
  readonly access?: CommandAccess<StandardSchemaV1.InferOutput<I>>;
  readonly description?: string;
}

const known = ['name', 'input', 'state', 'events', 'emits', 'stream', 'decide', 'access', 'description'];

/**
 * Declares a command. It becomes a mutation that folds the stream's state, decides, and appends the events at the
 * stream version that the decision is based on.
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
 */
export function defineCommand<
  const Name extends string,
  const I extends StandardSchemaV1,
  F extends EventFamily,
  S,
  const E extends EventTypeOf<F> = EventTypeOf<F>,
>(options: CommandOptions<Name, I, F, S, E>): Command<Name, I, F> {
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
  const state =
    options.state ?? (options.events && (defineState(options.events, () => ({}), {}) as unknown as StreamState<F, S>)); // a decision without a state ignores it
  if (state?.kind !== 'stream-state' || (options.state && options.events)) {
    throw invalidDeclaration(
      subject,
      `give 'state', created with defineState(events, initial, handlers), or 'events' if the decision needs no state.`,
    );
  }
  for (const name of ['stream', 'decide'] as const) {
    if (typeof options[name] !== 'function') throw invalidDeclaration(subject, `'${name}' is a function.`);
  }
  const emits = emittedTypes(subject, state.family, options.emits);
  const { access } = options;
  if (access !== undefined && access !== 'public' && access !== 'authenticated' && typeof access !== 'function')
    throw invalidDeclaration(
      subject,
      `'access' is 'public', 'authenticated' or a function from viewer and input to true or false.`,
    );
  return Object.freeze({
    kind: 'command',
    name: options.name,
    ...(options.description === undefined ? {} : { description: options.description }),
    input: options.input,
    family: state.family,
    emits,
    access: access as CommandAccess | undefined, // called with this command's parsed input only
    state: state as unknown as StreamState<F>, // S stays between this state and this decide
    streamOf: options.stream as (input: unknown) => string, // called with parsed input only
    decide(input: unknown, state: unknown, context: DecideContext) {
      const decided = options.decide(input as StandardSchemaV1.InferOutput<I>, state as S, context); // parsed input, state of this command
      const events = (Array.isArray(decided) ? decided : [decided]) as readonly NewEvent[]; // NewEventOf<F> is a NewEvent
      if (options.emits) checkEmitted(options.name, emits, events);
      return events;
    },
    async parse(input: unknown) {
      const result = await options.input['~standard'].validate(input);
      if (result.issues)
        throw new InvalidInput('BAD_USER_INPUT', `The input of '${options.name}'`, inputIssues(result.issues));
      return result.value;
    },
  } satisfies Command<Name, I, F>);
}

/** Returns the declared types, or all types of the family. @throws RefoldError `INVALID_DECLARATION` */
function emittedTypes(subject: string, { name, types }: EventFamily, given?: readonly string[]): readonly string[] {
  if (given === undefined) return types;
  if (!Array.isArray(given) || given.length === 0)
    throw invalidDeclaration(subject, `'emits' is a list of event types of ${name}, with at least one.`);
  const unknown = given.find((type) => !types.includes(type));
  if (unknown !== undefined)
    throw invalidDeclaration(
      subject,
      `'emits' names '${unknown}', which ${name} does not define.${closest(unknown, types)}`,
    );
  return Object.freeze([...given]);
}

/** An undeclared type would reach rows that the mutation's payload does not offer. */
function checkEmitted(name: string, emits: readonly string[], events: readonly NewEvent[]): void {
  const other = events.find(({ type }) => !emits.includes(type));
  if (!other) return;
  throw new RefoldError(
    'UNKNOWN_EVENT_TYPE',
    `defineCommand('${name}') decided '${other.type}', which its 'emits' does not name. Add it there.`,
    { command: name, type: other.type },
  );
}
