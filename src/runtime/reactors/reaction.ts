import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { EventMetadata, RecordedEvent } from '../../events/event.ts';
import type { EventPace } from '../../events/event-pace.ts';
import { unreadable } from '../../events/read-payload.ts';
import { chainProblem, reactionsAfter } from '../../reactors/reaction-chains.ts';
import type { HandlerResult, Reactor, ReactorContext } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf, withoutTraps } from '../../thrown.ts';
import { isTracing, traced, traceOf } from '../../tracing.ts';
import { executeStep } from '../commands/execute-step.ts';
import { createStepNames } from '../commands/step-names.ts';
import { createHandlerWaits, type HandlerWaits, Suspended, type WaitStore } from './handler-waits.ts';

export interface ReactionOptions {
  readonly reactor: Reactor;
  readonly db: Queryable;
  readonly log: EventLog;
  /** Where waits of handlers are kept. */
  readonly waits: WaitStore;
  readonly logger: Logger;
  /** Shared by the handlers of a reactor. */
  readonly pace: EventPace;
  /** Aborts every attempt and allows no other. */
  readonly signal: AbortSignal;
}

/** The result of one attempt. */
export type Reaction =
  | { readonly kind: 'handled'; readonly result: HandlerResult }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The handler waits. It runs again when the wait is over. */
  | { readonly kind: 'suspended' }
  /** It is unknown whether the event was handled, and this process does not try again. */
  | { readonly kind: 'given-up' };

/**
 * Makes one attempt to handle an event. Resolves at the timeout even if the handler still runs.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if a wait finds that the reactor has another owner. It never rejects otherwise.
 */
export function react(options: ReactionOptions, event: RecordedEvent, attempt: number): Promise<Reaction> {
  if (!isTracing) return reactTo(options, event, attempt);
  const { name } = options.reactor;
  const attributes = {
    'refold.reactor': name,
    'refold.attempt': attempt,
    'refold.position': event.position.toString(),
  };
  const within = traceOf(event.metadata.traceparent);
  return traced(`react ${name}`, { kind: 'consumer', within, attributes }, async (span) => {
    const reaction = await reactTo(options, event, attempt);
    if (reaction.kind === 'failed') span.fail('REACTION_FAILED');
    return reaction;
  });
}

async function reactTo(options: ReactionOptions, event: RecordedEvent, attempt: number): Promise<Reaction> {
  const { reactor, signal, pace } = options;
  // Handlers that wait for nothing would otherwise keep the event loop for as long as there are events.
  if (pace.isDue) await pace.turn();
  if (signal.aborted) return { kind: 'given-up' };
  const problem = unreadable(event) ?? chainProblem(reactor, event);
  if (problem) return { kind: 'failed', error: problem };
  const limited = new AbortController();
  const onAbort = () => limited.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => limited.abort(tookTooLong(reactor, event)), Math.min(reactor.timeout, longestTimer));
  const aborted = new Promise<never>((_, reject) => {
    limited.signal.addEventListener('abort', () => reject(limited.signal.reason), { once: true });
  });
  const { context, handlerWaits } = createContext(options, event, attempt, limited);
  const handle = async () => {
    pace.begin();
    const handled = reactor.handle(event, context);
    pace.after(event); // what it awaits blocks nothing
    const result = await handled;
    await handlerWaits.close(); // a wait that the handler does not await suspends it too
    return result;
  };
  try {
    const result = await Promise.race([aborted, handle()]);
    return { kind: 'handled', result: checkResult(result) };
  } catch (thrown) {
    const error = withoutTraps(thrown);
    if (error instanceof Suspended) return { kind: 'suspended' };
    const isFenced = error instanceof RefoldError && error.code === 'PROCESSOR_FENCED';
    if (isFenced && error === limited.signal.reason && !signal.aborted) throw error;
    return signal.aborted ? { kind: 'given-up' } : { kind: 'failed', error };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    await handlerWaits.close(); // it would be stored after the event is done
  }
}

/** Returns the error to record for a stop or a dead letter: what failed, where and why. */
export function reactionFailure(
  reactor: Pick<Reactor, 'name'>,
  event: RecordedEvent,
  error: unknown,
  attempts: number,
): RefoldError {
  const { type, position, streamId, id } = event;
  const tries = attempts === 1 ? '' : ` ${attempts} times`;
  const why = reasonOf(error);
  return new RefoldError(
    'REACTION_FAILED',
    `${reactor.name}: handling '${type}' at position ${position} (stream '${streamId}', event ${id}) failed${tries}: ${why}`,
    { reactor: reactor.name, position: position.toString(), eventId: id },
    { cause: error },
  );
}

const stops: ReadonlySet<string> = new Set(['REACTION_FAILED', 'PAYLOAD_VERSION_UNKNOWN', 'REACTOR_VERSION_UNKNOWN']);

/** Whether the reactor stops because of an event, in an orderly way. Other errors are those of a database, or of an owner that has changed. */
export function isStop(error: unknown): error is RefoldError {
  return error instanceof RefoldError && stops.has(error.code);
}

/** The error of an event whose attempts never ended, because their process did. */
export function processEnded({ type }: RecordedEvent, times: number): RefoldError {
  const often = times === 1 ? 'once' : `${times} times`;
  return new RefoldError(
    'PROCESS_ENDED',
    `the process ended ${often} while it handled '${type}', or lost the reactor to another process. Look for 'process.exit', exhausted memory or a kill in its log.`,
    { times },
  );
}

/** The reason to stop after a handler returned `stop`. */
export function stopRequested({ name }: Reactor, { type, position }: RecordedEvent): RefoldError {
  return new RefoldError(
    'REACTION_FAILED',
    `${name}: its handler of '${type}' returned 'stop' at position ${position}. To continue with the next event, run 'refold reactor resume ${name}'.`,
    { reactor: name, position: position.toString() },
  );
}

// The maximum delay of a Node timer. A longer one would fire at once.
const longestTimer = 2 ** 31 - 1;

function createContext(
  { reactor, db, log, waits: store, logger }: ReactionOptions,
  event: RecordedEvent,
  attempt: number,
  limited: AbortController,
): { readonly context: ReactorContext; readonly handlerWaits: HandlerWaits } {
  const { signal } = limited;
  const messageId = `${reactor.name}/${event.id}`;
  const names = createStepNames(reactor, event);
  const end = (reason: unknown) => limited.abort(reason);
  const handlerWaits = createHandlerWaits({ event, awaits: reactor.awaits, names, store, log, signal, end });
  const context: ReactorContext = {
    signal,
    messageId,
    attempt,
    wait: handlerWaits.waits,
    async stateAfter(declared, streamId = event.streamId) {
      const own = declared.family.name === event.family && streamId === event.streamId;
      // A stream position needs no look-up.
      const { state } = await log.stateOf(declared, streamId, { at: own ? event.streamPosition : event.position });
      return state;
    },
    logger: logger.child({ reactor: reactor.name, event: event.id, position: event.position.toString(), attempt }),
    async execute(command, input, { step, metadata } = {}) {
      // An attempt that is over must write nothing more: the next one may be running.
      signal.throwIfAborted();
      try {
        const named = names.ofCommand(command, step);
        const reactions = reactionsAfter(reactor, event);
        const context = { db, log, step: named, metadata: { ...causedBy(event), ...metadata, reactions } };
        return await executeStep(context, command, input);
      } catch (error) {
        // The attempt has failed, also if the handler catches the error: what it would do next belongs to other steps.
        if (isStepError(error)) limited.abort(error);
        throw error;
      }
    },
  };
  return { context, handlerWaits };
}

function isStepError(error: unknown): boolean {
  return error instanceof RefoldError && (error.code === 'STEP_CHANGED' || error.code === 'INVALID_STEP');
}

function causedBy({ id, metadata: { correlationId, traceparent } }: RecordedEvent): EventMetadata {
  return { correlationId: correlationId ?? id, causationId: id, ...(traceparent === undefined ? {} : { traceparent }) };
}

function checkResult(result: unknown): HandlerResult {
  if (result === undefined || result === null || result === 'ack') return 'ack';
  if (result === 'skip' || result === 'stop') return result;
  // Any other value is just what the handler's last expression happened to return.
  return 'ack';
}

function tookTooLong(reactor: Reactor, event: RecordedEvent): Error {
  return new Error(
    `'${event.type}' was not handled within ${reactor.timeout} ms. Raise the reactor's 'timeout', or pass the signal on in the handler.`,
  );
}

/** The reason to abort handlers that outlast a stop. */
export function leftBehind(reactor: Pick<Reactor, 'name'>): Error {
  return new Error(`${reactor.name}: the process stops, and the time that it waits for running handlers is over.`);
}
