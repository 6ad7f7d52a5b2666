import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { EventMetadata, RecordedEvent } from '../../events/event.ts';
import { unreadable } from '../../events/read-payload.ts';
import { chainProblem, reactionsAfter } from '../../reactors/reaction-chains.ts';
import type { HandlerResult, Reactor, ReactorContext } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { executeStep } from '../commands/execute-step.ts';
import { createStepNames } from '../commands/step-names.ts';

export interface ReactionOptions {
  readonly reactor: Reactor;
  readonly db: Queryable;
  readonly log: EventLog;
  readonly logger: Logger;
  /** Aborts every attempt and allows no other. */
  readonly signal: AbortSignal;
}

/** The result of one attempt. */
export type Reaction =
  | { readonly kind: 'handled'; readonly result: HandlerResult }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** It is unknown whether the event was handled, and this process does not try again. */
  | { readonly kind: 'given-up' };

/** Makes one attempt to handle an event. Never rejects, and resolves at the timeout even if the handler still runs. */
export async function react(options: ReactionOptions, event: RecordedEvent, attempt: number): Promise<Reaction> {
  const { reactor, signal } = options;
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
  try {
    const context = createContext(options, event, attempt, limited);
    const result = await Promise.race([aborted, reactor.handle(event, context)]);
    return { kind: 'handled', result: checkResult(result) };
  } catch (error) {
    return signal.aborted ? { kind: 'given-up' } : { kind: 'failed', error };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** Returns the error to record for a stop or a dead letter: what failed, where and why. */
export function reactionFailure(reactor: Reactor, event: RecordedEvent, error: unknown, attempts: number): RefoldError {
  const { type, position, streamId, id } = event;
  const tries = attempts === 1 ? '' : ` ${attempts} times`;
  const why = error instanceof Error ? error.message : String(error);
  return new RefoldError(
    'REACTION_FAILED',
    `${reactor.name}: handling '${type}' at position ${position} (stream '${streamId}', event ${id}) failed${tries}: ${why}`,
    { reactor: reactor.name, position: position.toString(), eventId: id },
    { cause: error },
  );
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
  { reactor, db, log, logger }: ReactionOptions,
  event: RecordedEvent,
  attempt: number,
  limited: AbortController,
): ReactorContext {
  const { signal } = limited;
  const messageId = `${reactor.name}/${event.id}`;
  const nameStep = createStepNames(reactor, event);
  return {
    signal,
    messageId,
    attempt,
    logger: logger.child({ reactor: reactor.name, event: event.id, position: event.position.toString(), attempt }),
    async execute(command, input, { step, metadata } = {}) {
      // An attempt that is over must write nothing more: the next one may be running.
      signal.throwIfAborted();
      try {
        const named = nameStep(command, step);
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
export function leftBehind(reactor: Reactor): Error {
  return new Error(`${reactor.name}: the process stops, and the time that it waits for running handlers is over.`);
}
