import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { isVersionUnknown } from '../../events/read-payload.ts';
import { pauseBeforeRetry, retriesAfterLoss } from '../../projections/projection/retry-rules.ts';
import type { HandlerResult, Reactor } from '../../reactors/reactor.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { insertReactorLetter } from '../../store/reactors/reactor-letters.ts';
import { withoutTraps } from '../../thrown.ts';
import { letterError } from '../dead-letters/dead-letters.ts';
import type { AttemptLog } from './attempt-log.ts';
import { processEnded, type ReactionOptions, react, reactionFailure } from './reaction.ts';
import type { ReactorTask } from './reactor-task.ts';

export interface AttemptOptions extends ReactionOptions {
  readonly attempts: AttemptLog;
}

/** What follows an attempt. */
export type AttemptOutcome =
  | { readonly kind: 'handled'; readonly result: HandlerResult }
  /** The rules allow another attempt after the pause, in milliseconds. */
  | { readonly kind: 'retry'; readonly pause: number }
  /** The event, or one that a command of the handler read, has a payload version that only a newer program knows. It does not count. */
  | { readonly kind: 'unreadable'; readonly error: RefoldError; readonly attempts: number }
  /** Finally failed, after this number of attempts. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly attempts: number }
  /** The handler waits. The attempt leaves nothing behind. */
  | { readonly kind: 'suspended' }
  /** It is unknown whether the event was handled, and this process does not try again. */
  | { readonly kind: 'given-up' };

export interface AttemptedEvent {
  readonly event: RecordedEvent;
  /** Why the event can't be handled at all. */
  readonly keyError?: { readonly error: unknown } | undefined;
}

/**
 * Makes the next attempt to handle an event, counts it, and applies the declared rules for retries. If the process ended during too many
 * attempts, there is none: it would end again.
 *
 * @param earlier attempts before those that are counted now: of a dead letter, before its present retry
 */
export async function attempt(
  options: AttemptOptions,
  { event, keyError }: AttemptedEvent,
  earlier = 0,
): Promise<AttemptOutcome> {
  const { reactor, attempts, logger } = options;
  const { position, type, id } = event;
  const { failed, lost } = attempts.of(position);
  if (lost > 0) {
    const error = processEnded(event, lost);
    if (lost > retriesAfterLoss(reactor.retries, error))
      return { kind: 'failed', error, attempts: earlier + failed + lost };
  }
  const number = earlier + (await attempts.begin(position));
  const outcome = keyError ? { kind: 'failed' as const, ...keyError } : await react(options, event, number);
  switch (outcome.kind) {
    case 'handled':
      attempts.forget(position);
      return outcome;
    case 'suspended':
      attempts.forget(position);
      await attempts.flush();
      return outcome;
    case 'given-up':
      attempts.givenUp(position);
      return outcome;
    case 'failed': {
      const error = withoutTraps(outcome.error);
      if (isVersionUnknown(error)) {
        attempts.givenUp(position);
        return { kind: 'unreadable', error, attempts: number };
      }
      const pause = pauseBeforeRetry(reactor.retries, error, attempts.failed(position), Math.random());
      if (pause === undefined) {
        attempts.forget(position);
        return { kind: 'failed', error, attempts: number };
      }
      const message = `${reactor.name}: '${type}' at position ${position} failed, trying again in ${Math.round(pause)} ms`;
      logger.warn({ reactor: reactor.name, event: id, attempt: number, err: error }, message);
      return { kind: 'retry', pause };
    }
  }
}

export interface UnhandledEventOptions {
  readonly db: Database;
  readonly claim: ProcessorClaim;
  readonly logger: Logger;
}

/** Applies the policy to an event that failed finally. With `stop`, it only describes the failure: the reactor stops with it. */
export async function applyPolicy(
  options: UnhandledEventOptions,
  task: ReactorTask,
  { error, attempts }: { readonly error: unknown; readonly attempts: number },
): Promise<{ readonly policy: Reactor['policy']; readonly described: RefoldError }> {
  const { logger } = options;
  const { event, reactor } = task;
  const { policy } = reactor;
  const described = reactionFailure(reactor, event, error, attempts);
  const fields = { reactor: reactor.name, event: event.id, err: error };
  if (policy === 'skip') {
    await reactor.onSkip?.({ event, error, attempts });
    logger.warn(fields, `left out: ${described.message}`);
  }
  if (policy === 'dead-letter') {
    await keepLetter(options, task, described, attempts);
    logger.error(fields, `kept as a dead letter: ${described.message}`);
  }
  return { policy, described };
}

/** Keeps an event as a dead letter: one that failed, or without an error one that waits behind another. */
export function keepLetter(
  { db, claim }: Pick<UnhandledEventOptions, 'db' | 'claim'>,
  { event, key }: ReactorTask,
  error: RefoldError | null,
  attempts = 0,
): Promise<void> {
  const { position, type, streamId } = event;
  const letter = { position, key, type, streamId, attempts, error: error && letterError(error) };
  return insertReactorLetter(db, claim, letter);
}
