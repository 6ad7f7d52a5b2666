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
import { type ReactionOptions, react, reactionFailure } from './reaction.ts';

// Events read in one page, because many may wait behind one that failed.
const atOnce = 200;

/**
 * Handles the dead letters of a key in their order, each once, until one fails. Dead letters that failed before are discarded if that was
 * requested.
 *
 * @returns the position of the first dead letter that is left.
 */
export async function redeliverKey(
  options: ReactionOptions & { readonly claim: ProcessorClaim },
  key: string,
): Promise<GlobalPosition | undefined> {
  const { reactor, db, log, claim } = options;
  const letters = await readLettersOfKey(db, reactor.name, key);
  if (letters.every(({ requested }) => requested === null)) return letters[0]?.position;
  for (let start = 0; start < letters.length; start += atOnce) {
    const some = letters.slice(start, start + atOnce);
    const events = await log.readAt(some.map(({ position }) => position));
    const byPosition = new Map(events.map((event) => [event.position, event]));
    for (const letter of some) {
      if (!(await redeliver(options, letter, byPosition.get(letter.position), letters))) return letter.position;
      await deleteReactorLetter(db, claim, letter.position);
    }
  }
  return undefined;
}

/** Returns whether the dead letter is finished and can be deleted. */
async function redeliver(
  options: ReactionOptions & { readonly claim: ProcessorClaim },
  letter: ReadLetter,
  event: RecordedEvent | undefined,
  read: readonly ReadLetter[],
): Promise<boolean> {
  if (letter.error && letter.requested === 'discard') return true;
  if (!event) return true;
  const attempt = letter.attempts + 1;
  const outcome = await react(options, event, attempt);
  switch (outcome.kind) {
    case 'handled':
      return true;
    case 'given-up':
      return false;
    case 'failed': {
      const error = reactionFailure(options.reactor, event, outcome.error, attempt);
      await keepReactorLetter(options.db, options.claim, letter, letterError(error), read);
      return false;
    }
  }
}
