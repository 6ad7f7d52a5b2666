import type { Projection } from '../projections/declaration/projection.ts';
import { invalidConfig } from './option-checks.ts';

/** How the connections of a process are divided. Beside them it has one that owns what it maintains, and one that listens. */
export interface ConnectionShares {
  /** For batches, the registry, and appends that fold nothing. */
  readonly work: number;
  /** For what clients read. */
  readonly reads: number;
  /** For appends that inline projections fold; 0 where there are none. */
  readonly appends: number;
}

export interface ConnectionUse {
  readonly database: { readonly maxConnections: number; readonly notifications: boolean };
  readonly projections: readonly Pick<Projection, 'mode'>[];
}

// Two statements of joined appends are under way at a time; the rest is for appends in order.
const mostAppends = 4;
// A transaction may wait for what another connection of its pool does.
const least = 2;

/** @throws RefoldError `INVALID_CONFIG` where there are too few. */
export function shareConnections({ database, projections }: ConnectionUse): ConnectionShares {
  const { maxConnections, notifications } = database;
  const folds = projections.some(({ mode }) => mode === 'inline');
  const alone = notifications ? 2 : 1;
  const needed = alone + (folds ? 3 : 2) * least;
  if (maxConnections < needed)
    throw invalidConfig(
      `database.maxConnections is ${maxConnections}; this application needs ${needed} in a process: ` +
        `${least} for batches, ${least} for reads, ${folds ? `${least} for appends that inline projections fold, ` : ''}1 for ownership${notifications ? ', 1 for notifications' : ''}.`,
    );
  const shared = maxConnections - alone;
  const appends = folds ? Math.min(mostAppends, Math.max(least, Math.floor(shared / 6))) : 0;
  const reads = Math.floor((shared - appends) / 2);
  return { work: shared - appends - reads, reads, appends };
}
