import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { readVersionStatus } from '../../store/registry/version-positions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { Positions } from './positions.ts';

export interface RowsWait {
  /** The database that holds the read tables. */
  readonly db: Queryable;
  readonly positions: Pick<Positions, 'waitFor' | 'forget'>;
  readonly signal: AbortSignal;
}

/**
 * Waits until the caller's table of a version holds the log up to the position. Returns false if the version has moved to another table by then.
 * The registry decides, because the checkpoint known to this process may be outdated: the version may have gone back, in a rebuild or after a
 * lost tail of the log, and the notification may have been lost.
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
    if (status === undefined) return true; // no longer in the registry: its reads report that
    if (status.tableName !== projection.tableName) return false;
    if (status.checkpoint >= position) return true;
    positions.forget();
  }
}
