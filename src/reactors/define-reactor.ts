import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../events/event-family.ts';
import type { Handled, Reactor, ReactorContext, ReactorErrorPolicy } from './reactor.ts';
import { checkRetries, defaultRetries } from './retry-rules.ts';

// A promise in any case: in a union with what is none, TypeScript widens the 'skip' of an async function to a string.
/** Handles one event. At least once: make it safe to repeat, with {@link ReactorContext.messageId}. */
export type ReactorHandler<E extends RecordedEvent> = (event: E, context: ReactorContext) => Promise<Handled>;

export interface ReactorOptions<F extends EventFamily> {
  /** snake_case; names its checkpoint, so another name is another reactor. */
  readonly name: string;
  /** The event family, or families, that it reads. */
  readonly events: F | readonly F[];
  /** Per event type, what is done; or one function for all events of the families. Only the types named here are read from the log. */
  readonly handle:
    | ReactorHandler<RecordedEventOf<F>>
    | { readonly [T in EventTypeOf<F>]?: ReactorHandler<RecordedEventOf<F, T>> };
  /**
   * Where it begins when it is first declared: with the first event of the log, or with those appended from then on. Looked at once; later it
   * goes on from its checkpoint. An operator can set that back with `refold reactor rewind`.
   * @default 'now': nobody is sent mails about the past
   */
  readonly from?: 'beginning' | 'now';
  /**
   * How many handlers may run at the same time. Events of one stream (or {@link key}) are handled one after the other in any case; with 1, all
   * are, in the order of the log, save that others go on while one waits to be tried again.
   * @default 1
   */
  readonly concurrency?: number;
  /**
   * What is handled in order, and held back behind a dead letter: events with equal keys. Pure.
   * @default the event's stream
   */
  readonly key?: (event: RecordedEventOf<F>) => string;
  /**
   * How long one try may take, in milliseconds. Then its signal aborts and it counts as failed; a handler that doesn't heed the signal
   * may still be at it during the next try.
   * @default 60000
   */
  readonly timeout?: number;
  /**
   * What becomes of an event that the handler fails on after the retries: `stop`, `skip` or `dead-letter`.
   * @default 'stop', after the default retries
   */
  readonly onError?: ReactorErrorPolicy['policy'] | ReactorErrorPolicy;
}

const known = ['name', 'events', 'handle', 'from', 'concurrency', 'key', 'timeout', 'onError'];

/**
 * Declares a side effect: what is done about events, at least once each, in the order of their streams. The checkpoint is the position up to
 * which everything is handled; what was done past it when a process ended is done again.
 *
 * @throws RefoldError `INVALID_DECLARATION` naming what to change.
 * @example
 * export const confirmationMails = defineReactor({
 *   name: 'confirmation_mails',
 *   events: order,
 *   handle: {
 *     OrderConfirmed: ({ payload }, { messageId, signal }) => mailer.send({ to: payload.email, idempotencyKey: messageId, signal }),
 *   },
 *   onError: 'dead-letter',
 * });
 */
export function defineReactor<const F extends EventFamily>(options: ReactorOptions<F>): Reactor {
  const { name, from = 'now', concurrency = 1, timeout = 60_000, key, onError = 'stop' } = options;
  const subject = `defineReactor('${name}')`;
  for (const option of Object.keys(options)) {
    if (!known.includes(option))
      throw invalidDeclaration(subject, `unknown option '${option}'.${closest(option, known)}`);
  }
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(name))
    throw invalidDeclaration(subject, `a reactor is named in snake_case, such as 'confirmation_mails'.`);
  if (from !== 'beginning' && from !== 'now')
    throw invalidDeclaration(subject, `'from' is 'beginning' or 'now', found '${String(from)}'.`);
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000)
    throw invalidDeclaration(subject, `'concurrency' is a whole number from 1 to 1000, found ${concurrency}.`);
  if (!(timeout > 0)) throw invalidDeclaration(subject, `'timeout' is a number of milliseconds, found ${timeout}.`);
  if (key !== undefined && typeof key !== 'function')
    throw invalidDeclaration(subject, `'key' is a function from an event to a text.`);
  const families = (Array.isArray(options.events) ? options.events : [options.events]) as readonly F[]; // F or a list of it
  if (families.length === 0 || families.some((family) => family?.kind !== 'event-family'))
    throw invalidDeclaration(subject, `'events' is a family, or families, that defineEvents made.`);
  const handlers = handlersOf(subject, families, options.handle);
  const policy = typeof onError === 'string' ? { policy: onError } : onError;
  checkPolicy(subject, policy);
  const keyOf = key as ((event: RecordedEvent) => unknown) | undefined; // called with events of these families only

  return Object.freeze({
    kind: 'reactor',
    name,
    families: Object.freeze([...families]),
    filter: Object.freeze([...handlers].map(([family, byType]) => ({ family, types: Object.keys(byType) }))),
    from,
    concurrency,
    timeout,
    policy: policy.policy,
    retries: checkRetries(subject, policy.retries ?? defaultRetries),
    onSkip: policy.onSkip,
    keyOf: (event: RecordedEvent) => (keyOf ? String(keyOf(event)) : `${event.family}/${event.streamId}`),
    async handle(event: RecordedEvent, context: ReactorContext) {
      return handlers.get(event.family)?.[event.type]?.(event, context);
    },
  } satisfies Reactor);
}

type AnyHandler = ReactorHandler<RecordedEvent>;

/** By family and type. */
function handlersOf(
  subject: string,
  families: readonly EventFamily[],
  handle: unknown,
): Map<string, Record<string, AnyHandler>> {
  const handlers = new Map<string, Record<string, AnyHandler>>();
  const add = (family: string, type: string, handler: unknown) => {
    if (typeof handler !== 'function') throw invalidDeclaration(subject, `handle.${type} is no function.`);
    // Without a prototype: an event type may be called 'constructor'.
    const byType = handlers.get(family) ?? (Object.create(null) as Record<string, AnyHandler>);
    handlers.set(family, Object.assign(byType, { [type]: handler }));
  };
  if (typeof handle === 'function') {
    for (const { name, types } of families) for (const type of types) add(name, type, handle);
    return handlers;
  }
  const types = families.flatMap((family) => family.types);
  for (const [type, handler] of Object.entries(handle ?? {})) {
    const owners = families.filter((family) => family.types.includes(type));
    const names = families.map((family) => family.name).join(', ');
    if (owners.length === 0)
      throw invalidDeclaration(
        subject,
        `handle names '${type}', which ${names} does not define.${closest(type, types)}`,
      );
    if (owners.length > 1)
      throw invalidDeclaration(
        subject,
        `handle names '${type}', which ${owners.map((family) => family.name).join(' and ')} both define. Handle all events with one function, or give the event types different names.`,
      );
    for (const { name } of owners) add(name, type, handler);
  }
  if (handlers.size === 0) throw invalidDeclaration(subject, `'handle' names no event type; name at least one.`);
  return handlers;
}

function checkPolicy(subject: string, policy: ReactorErrorPolicy): void {
  const options = ['policy', 'retries', 'onSkip'];
  for (const option of Object.keys(policy)) {
    if (!options.includes(option))
      throw invalidDeclaration(subject, `unknown option '${option}' of onError.${closest(option, options)}`);
  }
  if (!['stop', 'skip', 'dead-letter'].includes(policy.policy))
    throw invalidDeclaration(subject, `onError is 'stop', 'skip' or 'dead-letter', found '${String(policy.policy)}'.`);
  if (policy.onSkip && policy.policy !== 'skip')
    throw invalidDeclaration(subject, `onError.onSkip belongs to the policy 'skip', found it with '${policy.policy}'.`);
}
