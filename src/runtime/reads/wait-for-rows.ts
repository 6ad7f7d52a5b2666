import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { readVersionStatus, type StoredVersion } from '../../store/registry/version-positions.ts';
import { isLastEventLost } from '../../store/statements/log-anchors.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { type Positions, positionTimeout } from './positions.ts';

export interface RowsWait {
  /** The database that holds the read tables. */
  readonly db: Queryable;
  readonly positions: Pick<Positions, 'waitFor' | 'forget'>;
  readonly signal: AbortSignal;
}

/** Whether the rows are in the caller's table, and whether they may lack events up to the position. */
export type RowsThere = 'moved' | 'whole' | 'leaves out';

/**
 * Waits until the caller's table of a version holds the log up to the position. Returns `moved` if the version has another table by then.
 * The registry decides, because the checkpoint known to this process may be outdated: the version may have gone back, in a rebuild or after a
 * lost tail of the log, and the notification may have been lost. In another database than the log, nobody may have noticed a lost tail yet. Its
 * positions count again for other events, so the log is asked whether it still has those of the checkpoint.
 *
 * @throws RefoldError `POSITION_TIMEOUT`
 */
export async function waitForRows(
  { db, positions, signal }: RowsWait,
  projection: Projection,
  position: GlobalPosition,
): Promise<RowsThere> {
  for (;;) {
    await positions.waitFor(projection, position, { signal });
    const status = await readVersionStatus(db, projection.name, projection.version);
    if (status === undefined) return 'whole'; // no longer in the registry: its reads report that
    if (status.tableName !== projection.tableName) return 'moved';
    if (status.checkpoint < position) {
      positions.forget();
      continue;
    }
    if (!(await isOfLostEvents(db, status))) return status.leavesOut ? 'leaves out' : 'whole';
    const why = 'because its rows are those of events that the log has lost';
    throw positionTimeout(projection, { position, reached: beginning, why });
  }
}

/** False as well if the log is away: queries of a store continue then. */
async function isOfLostEvents(db: Queryable, { checkpoint, anchor }: StoredVersion): Promise<boolean> {
  const log = db.elsewhere?.log;
  if (!log) return false;
  try {
    return await isLastEventLost(log, checkpoint, anchor);
  } catch (error) {
    if (isOutage(error)) return false;
    throw error;
  }
}
