import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import {
  deleteReactorLetter,
  keepReactorLetter,
  type ReadLetter,
  readLettersOfKey,
} from '../../store/reactors/reactor-letters.ts';
import { letterError } from '../dead-letters/dead-letters.ts';
import { type AttemptOptions, attempt } from './attempt.ts';
import { reactionFailure } from './reaction.ts';

export interface RedeliveryOptions extends AttemptOptions {
  readonly claim: ProcessorClaim;
}

export interface RedeliveredKey {
  /** The position of the first dead letter that is left. */
  readonly first: GlobalPosition | undefined;
  /** Milliseconds until its next attempt, if the rules allow one. */
  readonly pause?: number;
}

// Events read in one page, because many may wait behind one that failed.
const atOnce = 200;

/**
 * Handles the dead letters of a key in their order, until one fails. Dead letters that failed before are discarded if that was requested.
 */
export async function redeliverKey(options: RedeliveryOptions, key: string): Promise<RedeliveredKey> {
  const { reactor, db, log, claim } = options;
  const letters = await readLettersOfKey(db, reactor.name, key);
  if (letters.every(({ requested }) => requested === null)) return { first: letters[0]?.position };
  for (let start = 0; start < letters.length; start += atOnce) {
    const some = letters.slice(start, start + atOnce);
    const events = await log.readAt(some.map(({ position }) => position));
    const byPosition = new Map(events.map((event) => [event.position, event]));
    for (const letter of some) {
      const { position } = letter;
      const done = await redeliver(options, letter, byPosition.get(position), letters);
      if (done.kind === 'left') return { first: position };
      if (done.kind === 'retry') return { first: position, pause: done.pause };
      await deleteReactorLetter(db, claim, position, done.kind);
    }
  }
  return { first: undefined };
}

type Redelivered = { readonly kind: 'handled' | 'skipped' | 'discarded' | 'left' } | Retry;
type Retry = { readonly kind: 'retry'; readonly pause: number };

async function redeliver(
  options: RedeliveryOptions,
  letter: ReadLetter,
  event: RecordedEvent | undefined,
  read: readonly ReadLetter[],
): Promise<Redelivered> {
  const { reactor, db, claim, attempts } = options;
  if (!event || (letter.error && letter.requested === 'discard')) {
    attempts.forget(letter.position);
    return { kind: 'discarded' };
  }
  const outcome = await attempt(options, { event }, letter.attempts);
  switch (outcome.kind) {
    case 'handled':
      return { kind: outcome.result === 'skip' ? 'skipped' : 'handled' };
    case 'given-up':
      return { kind: 'left' };
    case 'retry':
      return outcome;
    case 'unreadable':
    case 'failed': {
      const error = letterError(reactionFailure(reactor, event, outcome.error, outcome.attempts));
      await keepReactorLetter(db, claim, { ...letter, error, attempts: outcome.attempts }, read);
      attempts.forget(letter.position);
      await attempts.flush();
      return { kind: 'left' };
    }
  }
}
