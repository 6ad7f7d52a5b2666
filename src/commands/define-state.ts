import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../events/event-family.ts';
import { unreadable } from '../events/read-payload.ts';
import { type StateOptions, type StateSnapshots, stateSnapshots } from './state-snapshots.ts';

type KnownTypes<E, F extends EventFamily> = [Exclude<keyof E & string, EventTypeOf<F>>] extends [never]
  ? unknown
  : `evolve handles '${Exclude<keyof E & string, EventTypeOf<F>>}', an event type that the events do not define`;

// Lists every kind instead of `unknown`: a literal that a handler returns keeps its type only if the expected type can hold literals.
type AnyValue = string | number | bigint | boolean | object | null | undefined | AnyMembers | readonly AnyValue[];
interface AnyMembers {
  readonly [name: string]: AnyValue;
}

/** The handlers, whatever they return. Only `initial` says what the state is: `member: false` in it is a boolean. */
type StateEvolve<F extends EventFamily, S> = {
  readonly [T in EventTypeOf<F>]?: (state: S, event: RecordedEventOf<F, T>) => S | AnyValue;
};

/** Each handler returns a state. */
type ReturnsState<E, S> = {
  readonly [T in keyof E]: E[T] extends (...args: never) => infer R ? ([R] extends [S] ? unknown : () => S) : unknown;
};

/** How a stream's events fold into the state that `decide` receives. Created by {@link defineState}. */
export interface StreamState<F extends EventFamily = EventFamily, S = unknown> {
  readonly kind: 'stream-state';
  readonly family: F;
  readonly initial: () => S;
  /** Whether it has a handler. The state without one is always the initial one: no event is read for it. */
  readonly folds: boolean;
  /**
   * Returns the state after the event. An event without a handler leaves the state unchanged.
   *
   * @throws RefoldError `PAYLOAD_VERSION_UNKNOWN` or `UPCAST_FAILED` if the payload of a handled event can't be read
   */
  apply(state: S, event: RecordedEvent): S;
  /** How snapshots of the state are stored; undefined if none are. */
  readonly snapshots: StateSnapshots | undefined;
}

/**
 * Declares the state of a stream: the initial state, and how each event changes it.
 * The handlers are pure: they return a new state and never modify the old one.
 *
 * @param options `{ snapshotEvery: 100 }` stores snapshots of long streams. They change only how long a command takes, never its result.
 * @throws RefoldError `INVALID_DECLARATION` for a handler of an unknown event type, or an invalid option.
 * @example
 * const cartState = defineState(cart, (): CartState => ({ status: 'Empty' }), {
 *   ShoppingCartOpened: (state) => ({ ...state, status: 'Opened' }),
 *   ShoppingCartConfirmed: (state) => ({ ...state, status: 'Confirmed' }),
 * });
 */
export function defineState<const F extends EventFamily, S, E extends StateEvolve<F, S>>(
  family: F,
  initial: () => S,
  evolve: E & KnownTypes<E, F> & ReturnsState<E, S>,
  options: StateOptions<NoInfer<S>> = {},
): StreamState<F, S> {
  for (const type of Object.keys(evolve)) {
    if (!family.types.includes(type)) {
      throw invalidDeclaration(
        `defineState of ${family.name}`,
        `evolve handles '${type}', which ${family.name} does not define.${closest(type, family.types)}`,
      );
    }
  }
  const handlers = evolve as unknown as Readonly<Record<string, ((state: S, event: RecordedEvent) => S) | undefined>>; // called with events of its type only
  return Object.freeze({
    kind: 'stream-state',
    family,
    initial,
    folds: Object.keys(evolve).length > 0,
    apply(state: S, event: RecordedEvent) {
      const handler = Object.hasOwn(handlers, event.type) ? handlers[event.type] : undefined;
      if (!handler) return state;
      const unread = unreadable(event);
      if (unread) throw unread;
      return handler(state, event);
    },
    snapshots: stateSnapshots(
      family,
      [initial, ...Object.entries(evolve).flat()],
      options as StateOptions, // its functions receive states of this declaration only
    ),
  } satisfies StreamState<F, S>);
}
