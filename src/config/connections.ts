import type { Projection } from '../projections/projection/projection.ts';
import { invalidConfig } from './option-checks.ts';

/** How the connections of a process are divided. In addition the process has one that owns what it maintains, and one that listens. */
export interface ConnectionShares {
  /** Connections for batches, the registry, and appends that no inline projection folds. */
  readonly work: number;
  /** Connections for clients' reads. */
  readonly reads: number;
  /** Connections for appends that inline projections fold; 0 if there are no inline projections. */
  readonly appends: number;
}

export interface ConnectionUse {
  readonly database: { readonly maxConnections: number; readonly notifications: boolean };
  readonly projections: readonly Pick<Projection, 'mode'>[];
  readonly gateway: { readonly admin: object | undefined };
}

// Two batched append statements run at a time; the rest is for appends in order.
const maxAppends = 4;
/** Connections of the admin page and its API. */
export const adminConnections = 2;
// A transaction may wait for another connection of its pool.
export const least = 2;

/** Divides the connections of a process. @throws RefoldError `INVALID_CONFIG` if there are too few */
export function shareConnections({ database, projections, gateway }: ConnectionUse): ConnectionShares {
  const { maxConnections, notifications } = database;
  const folds = projections.some(({ mode }) => mode === 'inline');
  const admin = gateway.admin ? adminConnections : 0;
  const alone = (notifications ? 2 : 1) + admin;
  const needed = alone + (folds ? 3 : 2) * least;
  if (maxConnections < needed)
    throw invalidConfig(
      `database.maxConnections is ${maxConnections}; this application needs ${needed} in a process: ` +
        `${least} for batches, ${least} for reads, ${folds ? `${least} for appends that inline projections fold, ` : ''}1 for ownership${notifications ? ', 1 for notifications' : ''}${admin ? `, ${admin} for the admin page` : ''}.`,
    );
  const shared = maxConnections - alone;
  const appends = folds ? Math.min(maxAppends, Math.max(least, Math.floor(shared / 6))) : 0;
  const reads = Math.floor((shared - appends) / 2);
  return { work: shared - appends - reads, reads, appends };
}
