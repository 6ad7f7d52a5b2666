import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { isVersionUnknown } from '../../events/read-payload.ts';
import type { HandlerResult } from '../../reactors/reactor.ts';
import { pauseBeforeRetry, retriesAfterLoss } from '../../reactors/retry-rules.ts';
import type { AttemptLog } from './attempt-log.ts';
import { processEnded, type ReactionOptions, react } from './reaction.ts';

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
    case 'given-up':
      attempts.givenUp(position);
      return outcome;
    case 'failed': {
      const { error } = outcome;
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
