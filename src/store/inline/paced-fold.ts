import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { OnSlowEvent } from '../../events/event-pace.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Queryable } from '../statements/statement.ts';
import { TransactionPace } from '../statements/transaction-pace.ts';
import type { FoldBatchOptions } from './folded-batch.ts';
import { longestFrozenMs } from './own-transaction.ts';

/**
 * How an append folds: all of its events together may take as long as they need. An event that takes too long refuses its append, and not those that
 * are joined with it.
 */
export function pacedFold(
  tx: Queryable,
  projection: Projection,
  report: OnSlowEvent | undefined,
): Required<Pick<FoldBatchOptions, 'pace' | 'refuse'>> {
  let refusal: RefoldError | null = null;
  const onSlow: OnSlowEvent = (event, milliseconds) => {
    report?.(event, milliseconds);
    if (milliseconds >= longestFrozenMs) refusal = foldedTooSlowly(projection, event, milliseconds);
  };
  const pace = new TransactionPace(tx, onSlow, () => refusal !== null);
  const refuse = () => {
    const found = refusal;
    refusal = null;
    return found;
  };
  return { pace, refuse };
}

/** The error of an event whose fold took so long that the server has given up the transaction. */
function foldedTooSlowly(
  { id }: Projection,
  { type, position }: Pick<RecordedEvent, 'type' | 'position'>,
  milliseconds: number,
): RefoldError {
  const tookMs = Math.round(milliseconds);
  return new RefoldError(
    'EVOLVE_FAILED',
    `${id}: its code took ${tookMs} ms for '${type}', and an append must not wait longer than ${longestFrozenMs} ms for one event.`,
    { projection: id, type, position: position.toString(), part: 'evolve', tookMs },
  );
}
