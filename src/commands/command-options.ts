import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { CommandAccess } from '../access.ts';
import type { EventMetadata } from '../events/event.ts';
import type { EventFamily, EventTypeOf, NewEventOf } from '../events/event-family.ts';
import type { StreamState } from './define-state.ts';

/** What `load` receives beside the input. */
export interface LoadContext {
  readonly metadata: EventMetadata;
  /** The time of the execution, ISO 8601 UTC. */
  readonly now: string;
}

/** What `decide` receives beside input and state. */
export interface DecideContext<L = unknown> {
  /** The stream version up to which the state is folded; 0 if the stream does not exist. */
  readonly streamVersion: number;
  readonly metadata: EventMetadata;
  /** The time of the decision, ISO 8601 UTC. Use it instead of the clock, and tests can set the time. */
  readonly now: string;
  /** What `load` resolved to; undefined without one. */
  readonly loaded: L;
}

/** What the `decide` of a command on several streams receives beside input and states. */
export interface DecideStreamsContext<R extends readonly unknown[] = readonly unknown[], L = unknown>
  extends Omit<DecideContext<L>, 'streamVersion'> {
  /** For each stream, in order, the version up to which its state is folded; 0 if the stream does not exist. */
  readonly streamVersions: { readonly [K in keyof R]: number };
}

/** What every declared command can be called with. */
export type CommandContext = DecideStreamsContext;

/** One of the streams that a command decides on. */
export interface CommandStream<State extends StreamState = StreamState> {
  /** How the stream's events are folded: one of the command's `states`. */
  readonly state: State;
  readonly streamId: string;
}

// A conditional type, not an index: TypeScript must infer `E` from `emits` alone, not from what `decide` returns.
type EmittedBy<F extends EventFamily, E> = Extract<NewEventOf<F>, { readonly type: E }>;
type Decided<F extends EventFamily, E> = EmittedBy<F, E> | readonly EmittedBy<F, E>[];

interface CommonOptions<Name extends string, I extends StandardSchemaV1, L, E> {
  /** camelCase; becomes the name of the mutation. */
  readonly name: Name;
  /** Any Standard Schema validator. Its JSON Schema becomes the GraphQL input type. */
  readonly input: I;
  /**
   * The event types that `decide` may return. Any other type is a compile error and, at run time, `UNKNOWN_EVENT_TYPE`. The mutation's payload
   * offers the rows of the projections that handle one of these types. Declare it if other projections handle other events of the family.
   * @default all types of the families
   */
  readonly emits?: readonly E[];
  /**
   * Loads what the decision needs from elsewhere, such as a price or an exchange rate; `decide` receives it as `loaded`. It may be asynchronous.
   * It runs once for each execution, before the streams are read, also if `decide` runs again. Write it before `decide`: TypeScript infers
   * in that order.
   * @default nothing is loaded
   */
  readonly load?: (input: StandardSchemaV1.InferOutput<I>, context: LoadContext) => L | Promise<L>;
  /**
   * Who may run the command over GraphQL. `execute` in the program itself checks nothing. A function receives the viewer and the parsed input.
   * @default 'authenticated' if the configuration has `auth`, else 'public'
   */
  readonly access?: CommandAccess<StandardSchemaV1.InferOutput<I>>;
  readonly description?: string;
}

/** A command that decides on one stream. */
export interface CommandOptions<
  Name extends string,
  I extends StandardSchemaV1,
  F extends EventFamily,
  S,
  L = undefined,
  E extends EventTypeOf<F> = EventTypeOf<F>,
> extends CommonOptions<Name, I, L, E> {
  /** Folds the stream's events into the state that `decide` receives. Give `events` instead if the decision needs no state. */
  readonly state?: StreamState<F, S>;
  /** The family of the events that `decide` returns. Give it instead of `state`: no event is read, and the state that `decide` gets is undefined. */
  readonly events?: F;
  /** Returns the id of the stream that the command writes to. */
  readonly stream: (input: StandardSchemaV1.InferOutput<I>) => string;
  /**
   * Returns an event, or a list of events; an empty list changes nothing. A pure, synchronous function: it runs again if another command changed
   * the stream first.
   */
  readonly decide: (input: StandardSchemaV1.InferOutput<I>, state: S, context: DecideContext<L>) => Decided<F, E>;
}

type StateIn<State> = State extends StreamState<EventFamily, infer S> ? S : never;
type FamilyIn<State> = State extends StreamState<infer F, unknown> ? F : never;

/** A command that decides on several streams, and appends to all of them or to none. */
export interface StreamsCommandOptions<
  Name extends string,
  I extends StandardSchemaV1,
  T extends readonly StreamState[],
  R extends readonly CommandStream<T[number]>[],
  L = undefined,
  E extends EventTypeOf<T[number]['family']> = EventTypeOf<T[number]['family']>,
> extends CommonOptions<Name, I, L, E> {
  /** Every state that `streams` names, so the families of the command are known before any input. */
  readonly states: T;
  /**
   * Returns the streams that the command decides on, at least one and each once. `expectedVersion` of an execution, and the stream of its result,
   * are those of the first one. Write it before `decide`: TypeScript infers in that order.
   */
  readonly streams: (input: StandardSchemaV1.InferOutput<I>) => R;
  /**
   * Receives the state of each stream, all of one moment, and returns for each stream, in the same order, an event or a list of events. An empty list
   * changes nothing. A pure, synchronous function: it runs again if another command changed one of the streams first, also one that it only read.
   */
  readonly decide: (
    input: StandardSchemaV1.InferOutput<I>,
    states: { readonly [K in keyof R]: StateIn<R[K] extends CommandStream ? R[K]['state'] : never> },
    context: DecideStreamsContext<R, L>,
  ) =>
    | readonly []
    | { readonly [K in keyof R]: Decided<FamilyIn<R[K] extends CommandStream ? R[K]['state'] : never>, E> };
}
