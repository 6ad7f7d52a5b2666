import type { Database } from '../../store/postgres/database.ts';
import { pruneChanges } from '../../store/processors/changes.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';

export const keepChangesMinutes = 15;
export const pruneEveryMilliseconds = 60_000;

/** Lets a processor delete, at most once a minute, changes that are too old for any reader to need. */
export function createPruning(db: Database, claim: ProcessorClaim): () => Promise<void> {
  let last = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - last <= pruneEveryMilliseconds) return;
    last = performance.now();
    await pruneChanges(db, claim, keepChangesMinutes);
  };
}
