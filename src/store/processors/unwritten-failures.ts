import type { RefoldError } from '../../errors.ts';
import { payloadInAnyShape } from '../../events/read-payload.ts';
import { valueSize } from '../../projections/columns/row-size.ts';
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
  #bytes = 0;

  constructor({ onError }: Pick<Projection, 'onError'>) {
    this.#skips = onError.policy === 'skip';
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  get count(): number {
    return this.skipped.length + this.letters.length;
  }

  /** The size of the skipped events, which are held for `onSkip`. */
  get bytes(): number {
    return this.#bytes;
  }

  readonly add = ({ event, key, error }: LeftOutEvent): void => {
    if (error) this.errors.push(error);
    if (!this.#skips) {
      const { position, type, streamId } = event;
      this.letters.push({ key: key && keyText(key), position, type, streamId, error: error && letterError(error) });
    } else if (error) {
      this.skipped.push({ event, key, error }); // an event that waits behind a dead letter is no failure
      this.#bytes += valueSize(payloadInAnyShape(event));
    }
  };
}
