import type { Command } from '../commands/define-command.ts';
import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../events/event-family.ts';
import { streamKey } from '../events/event-names.ts';
import type { EventFilter } from '../projections/projection/projection.ts';
import { checkRetries, defaultRetries } from '../projections/projection/retry-rules.ts';
import { type AwaitedTypes, awaitedTypes, familyOf } from './awaited-types.ts';
import type { Handled, Reactor, ReactorContext, ReactorErrorPolicy } from './reactor.ts';

// Always a promise: in a union with a plain value, TypeScript widens the 'skip' of an async function to `string`.
/** Handles one event. Events are delivered at least once: make repetition safe with {@link ReactorContext.messageId}. */
export type ReactorHandler<E extends RecordedEvent, Awaited extends RecordedEvent = never> = (
  event: E,
  context: ReactorContext<Awaited>,
) => Promise<Handled>;

export interface ReactorOptions<F extends EventFamily, W extends EventTypeOf<F> = never> {
  /** snake_case. It names the checkpoint, so a renamed reactor is a new reactor. */
  readonly name: string;
  /**
   * The version of the handlers: 1, 2, 3… Declare the next one beside this one to change a workflow while events are under way. It handles the
   * events that no earlier version has begun to handle. Those that have begun end on their version, as long as it is declared; `refold reactor
   * list` shows how many there are. `name`, `from` and `concurrency` are the same in all versions.
   * @default 1
   */
  readonly version?: number;
  /** The event family or families that the reactor reads. */
  readonly events: F | readonly F[];
  /**
   * The event types that handlers wait for (`wait.for`), each with a pure function that returns the key of an event. Nobody can wait for an event
   * without a key.
   * @default none
   */
  readonly waitsFor?: { readonly [T in W]: (event: RecordedEventOf<F, T>) => string | null | undefined };
  /**
   * A handler for each event type, or one function for all events of the families. Only the types named here and in {@link waitsFor} are read from
   * the log.
   */
  readonly handle:
    | ReactorHandler<RecordedEventOf<F>, RecordedEventOf<F, W>>
    | { readonly [T in EventTypeOf<F>]?: ReactorHandler<RecordedEventOf<F, T>, RecordedEventOf<F, W>> };
  /**
   * Where a newly declared reactor starts: at the first event of the log, or with the events appended from now on. It counts only at the first
   * start, whatever its version is then. Later the reactor continues from its checkpoint. An operator can set the checkpoint back with
   * `refold reactor rewind`.
   * @default 'now': nobody receives mails about the past
   */
  readonly from?: 'beginning' | 'now';
  /**
   * How many handlers may run at the same time. Events of one stream (or {@link key}) are always handled one after the other. With 1, all events
   * are handled in the order of the log, except that others continue while one waits for a retry.
   * @default 1
   */
  readonly concurrency?: number;
  /**
   * Returns the ordering key. Events with equal keys are handled in order, and wait behind a dead letter of that key. A pure function.
   * @default the event's stream
   */
  readonly key?: (event: RecordedEventOf<F>) => string;
  /**
   * The timeout of one attempt, in milliseconds. After it the attempt's signal aborts and the attempt counts as failed. A handler that ignores
   * the signal may still be running during the next attempt.
   * @default 60000
   */
  readonly timeout?: number;
  /**
   * What happens to an event that still fails after the retries: `stop`, `skip` or `dead-letter`.
   * @default 'stop', after the default retries
   */
  readonly onError?: ReactorErrorPolicy['policy'] | ReactorErrorPolicy;
  /**
   * The commands that the handlers execute. If given, any other is refused with `INVALID_STEP`, and a start warns if a command may write an event
   * that the reactor handles: it could react to itself without end. What a command may write is known from its `emits`.
   * @default any command
   */
  readonly commands?: readonly Command[];
  /**
   * The longest chain of reactions of this reactor, in which each is caused by an event that a step of the previous one wrote, also across other
   * reactors. The next event is not handled: it goes the way of `onError` with `REACTION_LOOP`. `Infinity` for a workflow that continues itself.
   * @default 100
   */
  readonly maxChain?: number;
}

const known = [
  ...['name', 'version', 'events', 'waitsFor', 'handle', 'from', 'concurrency', 'key'],
  ...['timeout', 'onError', 'commands', 'maxChain'],
];

/**
 * Declares a reactor: side effects of events. Each event is handled at least once, in the order of its stream. The checkpoint is the position up
 * to which everything is handled. What was done past it when a process ended is done again.
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
export function defineReactor<const F extends EventFamily, W extends EventTypeOf<F> = never>(
  options: ReactorOptions<F, W>,
): Reactor {
  const {
    name,
    version = 1,
    from = 'now',
    concurrency = 1,
    timeout = 60_000,
    key,
    onError = 'stop',
    commands,
    maxChain = 100,
  } = options;
  const subject = `defineReactor('${name}')`;
  for (const option of Object.keys(options)) {
    if (!known.includes(option))
      throw invalidDeclaration(subject, `unknown option '${option}'.${closest(option, known)}`);
  }
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(name))
    throw invalidDeclaration(subject, `a reactor is named in snake_case, such as 'confirmation_mails'.`);
  if (!Number.isInteger(version) || version < 1 || version > 2 ** 31 - 1)
    throw invalidDeclaration(subject, `'version' is a whole number from 1 on, found ${version}.`);
  if (from !== 'beginning' && from !== 'now')
    throw invalidDeclaration(subject, `'from' is 'beginning' or 'now', found '${String(from)}'.`);
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000)
    throw invalidDeclaration(subject, `'concurrency' is a whole number from 1 to 1000, found ${concurrency}.`);
  if (!(timeout > 0)) throw invalidDeclaration(subject, `'timeout' is a number of milliseconds, found ${timeout}.`);
  if (key !== undefined && typeof key !== 'function')
    throw invalidDeclaration(subject, `'key' is a function from an event to a text.`);
  checkChain(subject, commands, maxChain);
  const families = (Array.isArray(options.events) ? options.events : [options.events]) as readonly F[]; // F or a list of it
  if (families.length === 0 || families.some((family) => family?.kind !== 'event-family'))
    throw invalidDeclaration(subject, `'events' is a family, or a list of families, created with defineEvents.`);
  const handlers = handlersOf(subject, families, options.handle);
  const awaited = awaitedTypes(subject, families, options.waitsFor);
  const handled = [...handlers].map(([family, byType]) => ({ family, types: Object.keys(byType) }));
  const policy = typeof onError === 'string' ? { policy: onError } : onError;
  checkPolicy(subject, policy);
  const keyOf = key as ((event: RecordedEvent) => unknown) | undefined; // called with events of these families only

  return Object.freeze({
    kind: 'reactor',
    name,
    version,
    families: Object.freeze([...families]),
    filter: Object.freeze(withAwaited(handled, awaited)),
    handled: Object.freeze(handled),
    awaits: new Map([...awaited].map(([type, { storedType }]) => [type, storedType])),
    from,
    concurrency,
    timeout,
    policy: policy.policy,
    retries: checkRetries(subject, policy.retries ?? defaultRetries),
    onSkip: policy.onSkip,
    commands: commands && Object.freeze([...commands]),
    maxChain,
    awaitedKeyOf(event: RecordedEvent) {
      const type = awaited.get(event.type);
      const found = type?.family === event.family ? type.keyOf(event) : undefined;
      return found === undefined || found === null ? undefined : String(found);
    },
    keyOf: (event: RecordedEvent) => (keyOf ? String(keyOf(event)) : streamKey(families, event)),
    async handle(event: RecordedEvent, context: ReactorContext) {
      return handlers.get(event.family)?.[event.type]?.(event, context);
    },
  } satisfies Reactor);
}

/** The event types that are read from the log. */
function withAwaited(handled: readonly EventFilter[], awaited: AwaitedTypes): EventFilter[] {
  const byFamily = new Map(handled.map(({ family, types }) => [family, new Set(types)]));
  for (const [type, { family }] of awaited) byFamily.set(family, (byFamily.get(family) ?? new Set<string>()).add(type));
  return [...byFamily].map(([family, types]) => ({ family, types: [...types] }));
}

function checkChain(subject: string, commands: readonly Command[] | undefined, maxChain: number): void {
  if (commands !== undefined && !(Array.isArray(commands) && commands.every((command) => command?.kind === 'command')))
    throw invalidDeclaration(subject, `'commands' is a list of commands, created with defineCommand.`);
  if (maxChain !== Number.POSITIVE_INFINITY && !(Number.isInteger(maxChain) && maxChain >= 1))
    throw invalidDeclaration(subject, `'maxChain' is a whole number from 1 on, or Infinity, found ${maxChain}.`);
}

type AnyHandler = ReactorHandler<RecordedEvent>;

/** Groups the handlers by family and event type. */
function handlersOf(
  subject: string,
  families: readonly EventFamily[],
  handle: unknown,
): Map<string, Record<string, AnyHandler>> {
  const handlers = new Map<string, Record<string, AnyHandler>>();
  const add = (family: string, type: string, handler: unknown) => {
    if (typeof handler !== 'function') throw invalidDeclaration(subject, `handle.${type} is no function.`);
    // No prototype, because an event type may be called 'constructor'.
    const byType = handlers.get(family) ?? (Object.create(null) as Record<string, AnyHandler>);
    handlers.set(family, Object.assign(byType, { [type]: handler }));
  };
  if (typeof handle === 'function') {
    for (const { name, types } of families) for (const type of types) add(name, type, handle);
    return handlers;
  }
  for (const [type, handler] of Object.entries(handle ?? {}))
    add(familyOf(subject, 'handle', families, type), type, handler);
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
