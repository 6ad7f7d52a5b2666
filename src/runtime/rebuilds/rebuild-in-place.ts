import type { GlobalPosition } from '../../events/global-position.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { forgetRecalled } from '../../store/processors/discards.ts';
import { forgetLeftOut } from '../../store/processors/left-out.ts';
import { lockPartitions } from '../../store/processors/partitions.ts';
import { beginAgain } from '../../store/registry/adopted-table.ts';
import { deleteRebuild, insertRebuild } from '../../store/registry/rebuilds.ts';
import type { LockedVersion } from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import { forgetDifferences } from '../../store/registry/verifications.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { dropLater, dropNever } from '../../store/tables/old-tables.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import type { TableSnapshot, WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { redeliverInherited } from '../dead-letters/redeliver-letters.ts';
import type { TransitionReason } from '../versions/expect-version.ts';
import { withoutAppends } from '../versions/leave-inline.ts';
import { pointViews } from '../versions/version-tables.ts';
import { expectRebuildable, oldTableSeconds } from './rebuild.ts';
import { createTableFrom, expectSnapshot } from './table-snapshots.ts';

/**
 * How long an emptied table remains. Operations that began on the old table end on it, and polling processes learn within a second that the
 * version is building. Short, because a rebuild in place is for disks that cannot hold two tables.
 */
const emptiedTableSeconds = 15;

export interface InPlaceOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
}

/**
 * Restarts a version with an empty table or with a snapshot's rows, in one transaction. Its processors go back to that position under a new epoch.
 * It is `building` until it has caught up, and then returns to its earlier state. Meanwhile the next lower active version answers; without one,
 * requests fail with `PROJECTION_NOT_READY`.
 *
 * @throws RefoldError `INVALID_TRANSITION` if a rebuild is running, if there is nothing to rebuild, or no such snapshot;
 *   `PROJECTION_CHANGED`.
 */
export async function rebuildInPlace(
  options: InPlaceOptions,
  step: TransitionReason,
  from?: WhichSnapshot,
): Promise<void> {
  const { db, projection, readSchema } = options;
  const { name, version } = projection;
  await expectStart(options, from);
  await withoutAppends(db, projection, async (tx) => {
    const before = await expectRebuildable(tx, projection, 'in place');
    const failed = await deleteRebuild(tx, name, version, 'in place');
    const snapshot = from && (await expectSnapshot(tx, projection, from));
    const { tableName, checkpoint } = await replaceTable(tx, options, before, snapshot);
    await insertRebuild(tx, {
      name,
      version,
      form: 'in place',
      tableName,
      startAt: checkpoint,
      anchor: null,
      snapshotId: snapshot?.id ?? null,
      stateBefore: failed?.stateBefore ?? before.state,
      ...step,
    });
    await recordTransition(tx, {
      name,
      version,
      from: before.state,
      to: 'building',
      // Rows that were found to differ are rebuilt, so they are compared once more.
      heldReason: before.heldBy === 'verification' ? null : before.heldReason,
      actor: step.actor,
      reason: `rebuild in place from ${snapshot ? `snapshot ${snapshot.id} at ` : ''}position ${checkpoint}: ${step.reason}`,
    });
    await pointViews(tx, readSchema, [name]);
    await dropLater(tx, readSchema, before.tableName, emptiedTableSeconds);
  });
}

/**
 * Serves a snapshot's rows at once, complete up to its position, and catches up from there. The version keeps its state. Use it if older correct
 * rows are better than the present ones.
 *
 * @throws RefoldError like {@link rebuildInPlace}
 */
export async function restoreSnapshot(
  options: InPlaceOptions,
  step: TransitionReason,
  from: WhichSnapshot,
): Promise<TableSnapshot> {
  const { db, projection, readSchema } = options;
  const { name, version } = projection;
  await expectStart(options, from);
  return withoutAppends(db, projection, async (tx) => {
    const before = await expectRebuildable(tx, projection);
    const snapshot = await expectSnapshot(tx, projection, from);
    const { tableName } = await replaceTable(tx, options, before, snapshot);
    await createReadTable(storedIn(projection, tableName), readSchema).createIndexes(tx);
    await recordTransition(tx, {
      name,
      version,
      from: before.state,
      to: before.state,
      heldReason: before.heldReason,
      actor: step.actor,
      reason: `restored as of snapshot ${snapshot.id} at position ${snapshot.checkpoint}: ${step.reason}`,
    });
    await pointViews(tx, readSchema, [name]);
    await dropLater(tx, readSchema, before.tableName, oldTableSeconds);
    return snapshot;
  });
}

/** Checks first, so an inline version stays with the appends if there is nothing to rebuild or no such snapshot. */
async function expectStart({ db, projection }: InPlaceOptions, from: WhichSnapshot | undefined): Promise<void> {
  await db.transaction(async (tx) => {
    await expectRebuildable(tx, projection, 'in place');
    if (from) await expectSnapshot(tx, projection, from);
  });
}

/** Creates a new table under the next name. Operations that still read the old table can finish. */
async function replaceTable(
  tx: Queryable,
  { log, readSchema, projection }: InPlaceOptions,
  before: LockedVersion,
  snapshot: TableSnapshot | undefined,
): Promise<{ tableName: string; checkpoint: GlobalPosition }> {
  const { name, version } = projection;
  const tableName = `${name}_v${version}_g${before.generation + 1}`;
  const checkpoint = snapshot?.checkpoint ?? projection.startAfter;
  await lockPartitions(tx, name, version);
  await dropNever(tx, readSchema, tableName);
  const stored = storedIn(projection, tableName);
  await createTableFrom(tx, readSchema, stored, snapshot);
  await redeliverInherited(tx, { log, readSchema, projection: stored });
  // For a rebuild, the process that completes it records its code.
  const codeFingerprint = snapshot?.codeFingerprint ?? projection.codeFingerprint;
  const anchor = snapshot?.anchor ?? null;
  await beginAgain(tx, { name, version, tableName, checkpoint, anchor, codeFingerprint });
  await forgetLeftOut(tx, before.tableName);
  await forgetDifferences(tx, name, version);
  await forgetRecalled(tx, name, version);
  return { tableName, checkpoint };
}
