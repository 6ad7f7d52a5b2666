import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { StreamState } from '../commands/define-state.ts';
import type { EventMetadata, RecordedEvent } from '../events/event.ts';
import type { EventFamily } from '../events/event-family.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import type { EventFilter } from '../projections/projection/projection.ts';
import type { RetryRule } from '../projections/projection/retry-rules.ts';
import type { Waits } from './wait.ts';

/**
 * The result of handling an event. `ack` (or nothing): handled. `skip`: left out on purpose; it is counted. `stop`: handled, and the reactor
 * should stop. If the event could not be handled, throw an error.
 */
export type HandlerResult = 'ack' | 'skip' | 'stop';

/** What handlers return. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing, or a promise of nothing, has handled its event
export type Handled = HandlerResult | void;

/** What a reactor's handler receives beside the event. `Awaited`: the events of the reactor's `waitsFor`, for `wait.for`. */
export interface ReactorContext<Awaited extends RecordedEvent = never> {
  /** Aborts on the timeout, when the process stops and its grace period is over, or when another process takes over. Pass it on. */
  readonly signal: AbortSignal;
  /** Adds the reactor and the event to each line. */
  readonly logger: Logger;
  /**
   * `reactor/event id`: the same for every attempt, in every process. Send it along (as `Idempotency-Key` or as a message id), and the
   * receiver can detect repetitions.
   */
  readonly messageId: string;
  /** The number of this attempt: 1, 2, 3… Attempts in earlier processes count, also those during which the process ended. */
  readonly attempt: number;
  /**
   * Runs a command once, as a step of a workflow. The outcome is stored under reactor, event and step, with a fingerprint of the input. A
   * repetition returns the stored outcome and decides nothing again, even if the command was rejected or led to no event.
   * The events it writes carry the event's correlation id (or the event's id, if it has none), and the event's id as causation id.
   *
   * @throws CommandRejected, from this run or the stored one; InvalidInput; RefoldError `STEP_CHANGED` if the stored outcome is of another
   * input, `INVALID_STEP` if a name is missing or used twice. After these two the attempt has failed, and its signal aborts.
   */
  execute(command: Command, input: unknown, options?: StepOptions): Promise<StepResult>;
  /**
   * The state of a stream as of the event: the event's own stream, or another one. It is the same at every attempt, whatever is appended
   * meanwhile. Snapshots of the state make it faster.
   *
   * @example
   * handle: async (event, { stateAfter }) => publish(event.id, await stateAfter(orderState)),
   */
  stateAfter<F extends EventFamily, S>(state: StreamState<F, S>, streamId?: string): Promise<S>;
  /** Waits for a time or for an event, through restarts and deployments, while no process holds anything. */
  readonly wait: Waits<Awaited>;
}

export interface StepOptions {
  /**
   * Names the step among the steps of this event, in up to 200 characters. Required for each execution of a command that the handler executes
   * more than once for an event. With a name, the step stays the same if its command is renamed. Do not change or remove a name while events
   * may be under way.
   * @default the command's name
   */
  readonly step?: string;
  /** Added to correlation id and causation id; may replace them. */
  readonly metadata?: EventMetadata;
}

/** The outcome of a step, from this run or from its first run. */
export interface StepResult {
  /** The position of the last event written. If the step wrote none: of the stream's last event at that time. */
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly events: readonly RecordedEvent[];
}

/** An event that a reactor could not handle. */
export interface ReactorFailure {
  readonly event: RecordedEvent;
  /** What the last attempt threw. */
  readonly error: unknown;
  readonly attempts: number;
}

/**
 * What happens to an event that still fails after the retries.
 *
 * - `stop`: the reactor stops at the event until it is resumed or its process restarts. Nothing is lost, and nothing continues.
 * - `skip`: the event is left out. `onSkip` runs before the checkpoint moves.
 * - `dead-letter`: the event becomes a dead letter. Later events of the same key wait behind it, in order; other keys continue.
 *   Handle them with `refold dead-letters retry`.
 */
export interface ReactorErrorPolicy {
  readonly policy: 'stop' | 'skip' | 'dead-letter';
  /**
   * When to retry first. The first rule that matches an error applies. An error that no rule matches is not retried. While Refold's own
   * database is unreachable, steps are retried without end, whatever the rules say. An attempt during which the process ends is repeated up to
   * five times, or as often as the matching rule says if that is more. A rule for `PROCESS_ENDED` may say less.
   * @default no retry of `CommandRejected` and `InvalidInput`, five retries of any other error
   */
  readonly retries?: readonly RetryRule[];
  readonly onSkip?: (failure: ReactorFailure) => void | Promise<void>;
}

/** A declared reactor, checked and frozen. Created by `defineReactor`. */
export interface Reactor {
  readonly kind: 'reactor';
  readonly name: string;
  readonly version: number;
  readonly families: readonly EventFamily[];
  /** The event types that it handles or awaits. The query that reads the log applies it. */
  readonly filter: readonly EventFilter[];
  /** Those that it handles. */
  readonly handled: readonly EventFilter[];
  /** The event types that handlers wait for, each with the name under which the log keeps it. */
  readonly awaits: ReadonlyMap<string, string>;
  readonly from: 'beginning' | 'now';
  readonly concurrency: number;
  /** The timeout of one attempt, in milliseconds. */
  readonly timeout: number;
  readonly policy: ReactorErrorPolicy['policy'];
  readonly retries: readonly RetryRule[];
  readonly onSkip: ReactorErrorPolicy['onSkip'];
  /** The commands that its handlers may execute; undefined: any. */
  readonly commands: readonly Command[] | undefined;
  readonly maxChain: number;
  /** The key under which handlers wait for the event; undefined if none can. May throw. */
  awaitedKeyOf(event: RecordedEvent): string | undefined;
  /** Events with equal keys are handled one after the other, in their order. */
  keyOf(event: RecordedEvent): string;
  handle(event: RecordedEvent, context: ReactorContext): Promise<Handled>;
}
