import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { readVersionStatus } from '../../store/registry/version-positions.ts';
import type { Positions } from './positions.ts';

export interface RowsWait {
  /** The database that holds the read tables. */
  readonly db: Queryable;
  readonly positions: Pick<Positions, 'waitFor' | 'forget'>;
  readonly signal: AbortSignal;
}

/**
 * Waits until the table that the caller knows of a version holds the log up to the position. Gives false where the version has another table by
 * then. The registry has the last word: what this process has heard of a checkpoint is out of date where the version went back since, with a
 * rebuild or a lost tail of the log, and the notification of it was lost.
 *
 * @throws RefoldError `POSITION_TIMEOUT`
 */
export async function waitForRows(
  { db, positions, signal }: RowsWait,
  projection: Projection,
  position: GlobalPosition,
): Promise<boolean> {
  for (;;) {
    await positions.waitFor(projection, position, { signal });
    const status = await readVersionStatus(db, projection.name, projection.version);
    if (status === undefined) return true; // it is not in the registry any more: its reads say so
    if (status.tableName !== projection.tableName) return false;
    if (status.checkpoint >= position) return true;
    positions.forget();
  }
}
