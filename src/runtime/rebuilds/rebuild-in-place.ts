import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import { type Projection, storedIn } from '../../projections/declaration/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { forgetRecalled } from '../../store/processors/discards.ts';
import { forgetLeftOut } from '../../store/processors/left-out.ts';
import { lockPartitions } from '../../store/processors/partitions.ts';
import { beginAgain, deleteRebuild, insertRebuild } from '../../store/registry/rebuilds.ts';
import type { LockedVersion } from '../../store/registry/registry.ts';
import { recordStep } from '../../store/registry/transitions.ts';
import { forgetDifferences } from '../../store/registry/verifications.ts';
import { dropLater, dropNever } from '../../store/tables/old-tables.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import type { TableSnapshot, WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { redeliverInherited } from '../dead-letters/redeliver-letters.ts';
import { withoutAppends } from '../versions/leave-inline.ts';
import { pointView } from '../versions/lifecycle.ts';
import type { StepReason } from '../versions/step.ts';
import { expectRebuildable, oldTableSeconds } from './rebuild.ts';
import { createTableFrom, expectSnapshot } from './table-snapshots.ts';

/**
 * What has begun on the old table ends on it, and processes that poll for news hear within a second that the version is building. Short,
 * because a rebuild in place is for disks that don't hold two tables.
 */
const emptiedTableSeconds = 15;

export interface InPlaceOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
}

/**
 * Has a version begin anew, with an empty table or with a snapshot's rows, in one transaction: its processors go back to that position
 * under a new epoch, and it is `building` until it has caught up, when it goes back to the state that it had. Meanwhile the next lower
 * active version answers, or nobody (`PROJECTION_NOT_READY`).
 *
 * @throws RefoldError `INVALID_TRANSITION` where a rebuild is under way, or where there is nothing to rebuild, or no such snapshot;
 *   `PROJECTION_CHANGED`.
 */
export async function rebuildInPlace(options: InPlaceOptions, step: StepReason, from?: WhichSnapshot): Promise<void> {
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
      snapshotId: snapshot?.id ?? null,
      stateBefore: failed?.stateBefore ?? before.state,
      ...step,
    });
    await recordStep(tx, {
      name,
      version,
      from: before.state,
      to: 'building',
      // Rows that were found to differ are built anew: they are compared once more.
      heldReason: before.heldBy === 'verification' ? null : before.heldReason,
      actor: step.actor,
      reason: `rebuild in place from ${snapshot ? `snapshot ${snapshot.id} at ` : ''}position ${checkpoint}: ${step.reason}`,
    });
    await pointView(tx, readSchema, name);
    await dropLater(tx, readSchema, before.tableName, emptiedTableSeconds);
  });
}

/**
 * Serves a snapshot's rows at once, whole as of then, and catches up from there; the version keeps its state. For when rows that are
 * older but right are better than those that are there.
 *
 * @throws RefoldError as {@link rebuildInPlace}
 */
export async function restoreSnapshot(
  options: InPlaceOptions,
  step: StepReason,
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
    await recordStep(tx, {
      name,
      version,
      from: before.state,
      to: before.state,
      heldReason: before.heldReason,
      actor: step.actor,
      reason: `restored as of snapshot ${snapshot.id} at position ${snapshot.checkpoint}: ${step.reason}`,
    });
    await pointView(tx, readSchema, name);
    await dropLater(tx, readSchema, before.tableName, oldTableSeconds);
    return snapshot;
  });
}

/** Where there is nothing to begin, or to begin with, an inline version stays with the appends. */
async function expectStart({ db, projection }: InPlaceOptions, from: WhichSnapshot | undefined): Promise<void> {
  await db.transaction(async (tx) => {
    await expectRebuildable(tx, projection, 'in place');
    if (from) await expectSnapshot(tx, projection, from);
  });
}

/** A new table under the next name: whoever is still reading the old one reads it whole. */
async function replaceTable(
  tx: Queryable,
  { log, readSchema, projection }: InPlaceOptions,
  before: LockedVersion,
  snapshot: TableSnapshot | undefined,
): Promise<{ tableName: string; checkpoint: GlobalPosition }> {
  const { name, version } = projection;
  const tableName = `${name}_v${version}_g${before.generation + 1}`;
  const checkpoint = snapshot?.checkpoint ?? beginning;
  await lockPartitions(tx, name, version);
  await dropNever(tx, readSchema, tableName);
  const stored = storedIn(projection, tableName);
  await createTableFrom(tx, readSchema, stored, snapshot);
  await redeliverInherited(tx, { log, readSchema, projection: stored });
  // Of a rebuild, whoever does it says in the end which code it had.
  const codeFingerprint = snapshot?.codeFingerprint ?? projection.codeFingerprint;
  await beginAgain(tx, { name, version, tableName, checkpoint, codeFingerprint });
  await forgetLeftOut(tx, before.tableName);
  await forgetDifferences(tx, name, version);
  await forgetRecalled(tx, name, version);
  return { tableName, checkpoint };
}
