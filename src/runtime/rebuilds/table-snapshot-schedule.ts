import type { Logger } from 'pino';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import { eventsSinceSnapshot, pruneTableSnapshots, trySnapshotLock } from '../../store/tables/table-snapshots.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import type { VersionView } from '../versions/versions.ts';
import { takeSnapshot } from './table-snapshots.ts';

export interface SnapshotScheduleOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly versions: VersionView;
  /** Identifies this process in the list of snapshots. */
  readonly owner: string;
  readonly logger: Logger;
}

// Snapshots need no precise timing. Each check is one small statement for each projection that declares a schedule.
const lookMilliseconds = 1000;

/**
 * Takes the scheduled snapshots of read tables, and drops older scheduled ones. Of several processes, one takes each snapshot.
 * Undefined if no projection declares a schedule.
 */
export function createSnapshotSchedule(options: SnapshotScheduleOptions): PeriodicTask | undefined {
  const { db, versions, logger } = options;
  const scheduled = options.projections.filter(({ snapshots }) => snapshots !== null);
  if (scheduled.length === 0) return undefined;
  return startPeriodicTask(
    lookMilliseconds,
    async (signal) => {
      for (const projection of scheduled) {
        if (signal.aborted) return;
        const state = versions.stateOf(projection.name, projection.version);
        if ((state === 'ready' || state === 'active') && (await isDue(db, projection)))
          await takeDue(options, projection);
      }
    },
    (error) => logger.warn({ err: error }, 'a snapshot of the schedule could not be taken; trying again'),
  );
}

async function isDue(db: Pick<Database, 'query'>, { name, version, snapshots }: Projection): Promise<boolean> {
  return snapshots !== null && (await eventsSinceSnapshot(db, name, version)) >= BigInt(snapshots.everyEvents);
}

async function takeDue(
  { db, readSchema, owner, logger }: SnapshotScheduleOptions,
  projection: Projection,
): Promise<void> {
  const { id, name, version, snapshots } = projection;
  await db.transaction(async (tx) => {
    // Another process may be taking it now, or have taken it since the check.
    if (!snapshots || !(await trySnapshotLock(tx, name, version)) || !(await isDue(tx, projection))) return;
    const step = { actor: owner, reason: `every ${snapshots.everyEvents} events` };
    const taken = await takeSnapshot({ db, readSchema, name, version, automatic: true }, step);
    await pruneTableSnapshots(tx, name, version, snapshots.keep);
    logger.info(
      {
        projection: id,
        snapshot: taken.id.toString(),
        checkpoint: taken.checkpoint.toString(),
        rows: taken.rows.toString(),
      },
      `${id}: snapshot ${taken.id} of its table is taken`,
    );
  });
}
