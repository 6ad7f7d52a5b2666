import type { RefoldError } from '../../errors.ts';
import type { LeftOutEvent } from '../../projections/fold/fold-by-policy.ts';
import { type FoldFailure, keyText, type Projection } from '../../projections/projection/projection.ts';
import { letterError, type NewDeadLetter } from './dead-letters.ts';

/** What a fold has left out of the rows, until it is written with them: skipped, or moved to dead letters. */
export class UnwrittenFailures {
  /** The failures that the policy `skip` left out. */
  readonly skipped: FoldFailure[] = [];
  readonly letters: NewDeadLetter[] = [];
  /** The errors of both. */
  readonly errors: RefoldError[] = [];
  readonly #skips: boolean;

  constructor({ onError }: Pick<Projection, 'onError'>) {
    this.#skips = onError.policy === 'skip';
  }

  get isEmpty(): boolean {
    return this.skipped.length + this.letters.length === 0;
  }

  readonly add = ({ event, key, error }: LeftOutEvent): void => {
    if (error) this.errors.push(error);
    if (!this.#skips) {
      const { position, type, streamId } = event;
      this.letters.push({ key: key && keyText(key), position, type, streamId, error: error && letterError(error) });
    } else if (error) this.skipped.push({ event, key, error }); // an event that waits behind a dead letter is no failure
  };
}
