import { errorOf, reasonOf } from '../../thrown.ts';
import type { FoldFailure, Projection } from '../projection/projection.ts';

/** Thrown if the hook `onSkip` failed. Nothing of its batch is written. */
export class OnSkipFailed extends Error {
  constructor({ id, hidden }: Projection, cause: unknown) {
    const reason = hidden.size > 0 ? 'its error may contain hidden values.' : reasonOf(cause);
    super(`${id}: onSkip failed: ${reason}`, hidden.size > 0 ? {} : { cause: errorOf(cause) });
  }
}

/** Calls the hook `onSkip`, in the transaction that leaves the event out. @throws OnSkipFailed */
export async function callOnSkip(projection: Projection, failure: FoldFailure): Promise<void> {
  try {
    await projection.onError.onSkip?.(failure);
  } catch (error) {
    throw new OnSkipFailed(projection, error);
  }
}
