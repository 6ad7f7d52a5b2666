import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { EventMetadata, RecordedEvent } from '../events/event.ts';
import type { EventFamily } from '../events/event-family.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import type { EventFilter } from '../projections/declaration/projection.ts';
import type { RetryRule } from './retry-rules.ts';

/**
 * What a handler says of an event: `ack` (or nothing), it is handled; `skip`, it was left out on purpose, which is counted; `stop`, it is
 * handled and nothing more is wanted. An event that could not be handled is an error that is thrown.
 */
export type HandlerResult = 'ack' | 'skip' | 'stop';

/** What handlers return. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing, or passes on a promise of nothing, has handled its event
export type Handled = HandlerResult | void;

/** What a reactor's handler works with beside the event. */
export interface ReactorContext {
  /** Aborts when the handler's time is over, when the process stops and won't wait longer, or when another process took over. Pass it on. */
  readonly signal: AbortSignal;
  /** Names reactor and event in each line. */
  readonly logger: Logger;
  /**
   * `reactor/event id`: the same however often the event is handled, in whichever process. Send it along (as `Idempotency-Key`, as a
   * message id), so that the other side can tell a repetition.
   */
  readonly messageId: string;
  /** 1, 2, 3…: which try this is. Counts from 1 again where another process, or this one after a crash, handles the event anew. */
  readonly attempt: number;
  /**
   * Runs a command as a step of a workflow, once: the step's outcome is remembered under a key made of reactor, event, command and step,
   * and a repetition gets the same outcome without anything being decided again, also where the command was rejected or led to no event.
   * What it writes has the event's correlation id (or the event's id, where it has none), and the event's id as causation id.
   *
   * @throws CommandRejected, now or as then; InvalidInput
   */
  execute(command: Command, input: unknown, options?: StepOptions): Promise<StepResult>;
}

export interface StepOptions {
  /**
   * Names the step within the handling of the event. Give one where the order of the calls may differ from one try to the next.
   * @default the number of the call among those of the same command: `1`, `2`…
   */
  readonly step?: string;
  /** Beside correlation and causation id, which it may replace. */
  readonly metadata?: EventMetadata;
}

/** What a step has led to, now or when it was first run. */
export interface StepResult {
  /** Of the last event written; where the step led to none, of the stream's last event then. */
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly events: readonly RecordedEvent[];
}

/** An event that a reactor has given up on. */
export interface ReactorFailure {
  readonly event: RecordedEvent;
  /** What the last try threw. */
  readonly error: unknown;
  readonly attempts: number;
}

/**
 * What becomes of an event that a handler fails on, after the retries.
 *
 * - `stop`: the reactor stops at it until it is resumed or its process starts again; nothing is lost, and nothing goes on.
 * - `skip`: it is left out; `onSkip` is told before the checkpoint moves.
 * - `dead-letter`: the event is kept, and later events of the same key are kept behind it, in order; other keys go on. They are
 *   handled with `refold dead-letters retry`.
 */
export interface ReactorErrorPolicy {
  readonly policy: 'stop' | 'skip' | 'dead-letter';
  /**
   * When to try again before that; the first rule that fits an error counts. An error that none fits is not retried. While Refold's own
   * database can't be reached, steps are tried again without end, whatever is declared.
   * @default no retry of `CommandRejected` and `InvalidInput`, five of anything else
   */
  readonly retries?: readonly RetryRule[];
  readonly onSkip?: (failure: ReactorFailure) => void | Promise<void>;
}

/** A declared reactor, checked and frozen. Made by `defineReactor`. */
export interface Reactor {
  readonly kind: 'reactor';
  readonly name: string;
  readonly families: readonly EventFamily[];
  /** Derived from the handlers; applied in the query that reads the log. */
  readonly filter: readonly EventFilter[];
  readonly from: 'beginning' | 'now';
  readonly concurrency: number;
  /** Of one try, in milliseconds. */
  readonly timeout: number;
  readonly policy: ReactorErrorPolicy['policy'];
  readonly retries: readonly RetryRule[];
  readonly onSkip: ReactorErrorPolicy['onSkip'];
  /** Events with equal keys are handled one after the other, in their order. */
  keyOf(event: RecordedEvent): string;
  handle(event: RecordedEvent, context: ReactorContext): Promise<Handled>;
}
