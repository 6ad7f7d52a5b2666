import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { FoldedBatch } from './folded-batch.ts';

/** Some appends of a batch cannot be folded. Nothing of the batch may be written. */
export class Refused extends Error {
  readonly appends: ReadonlyMap<number, RefoldError>;

  constructor(appends: ReadonlyMap<number, RefoldError>) {
    super('refused');
    this.appends = appends;
  }
}

/** @throws Refused if a version with the policy `stop` could not fold some of the appends */
export function refuseFailed(folded: readonly { projection: Projection; batch: FoldedBatch }[]): void {
  const appends = new Map<number, RefoldError>();
  for (const {
    projection,
    batch: { refused },
  } of folded) {
    for (const [index, error] of refused) {
      if (!appends.has(index)) appends.set(index, refusedBy(projection, error));
    }
  }
  if (appends.size > 0) throw new Refused(appends);
}

/** The error of a refused append. */
export function refusedBy({ id, uniqueIndexes }: Projection, error: RefoldError): RefoldError {
  if (error.code === 'UNIQUE_CHECK_UNAVAILABLE') return error;
  const policy = uniqueIndexes.length > 0 ? `declare onError: 'skip'` : `declare another 'onError'`;
  const other = error.fields.tookMs === undefined ? policy : `declare it without mode: 'inline'`;
  const wayOut = error.fields.taken === true ? '' : ` Fix the projection, or ${other}.`;
  const message = `${error.message} Nothing was appended, because the rows of ${id} commit with the append.${wayOut}`;
  return new RefoldError(error.code, message, { ...error.fields }, { cause: error.cause });
}
