import { RefoldError } from '../../errors.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { forgetLeftOut } from '../../store/processors/left-out.ts';
import {
  acceptDeadLetters,
  deleteRebuild,
  insertRebuild,
  type RebuildForm,
  readAllRebuilds,
} from '../../store/registry/rebuilds.ts';
import type { LockedVersion } from '../../store/registry/registry.ts';
import { recordOperation } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { dropLater, dropNever } from '../../store/tables/old-tables.ts';
import type { WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { redeliverInherited } from '../dead-letters/redeliver-letters.ts';
import {
  expectDeclaredTable,
  expectVersion,
  refused,
  refusePaused,
  type TransitionReason,
} from '../versions/expect-version.ts';
import { createTableFrom, expectSnapshot } from './table-snapshots.ts';

/** How long an old table remains for running operations. The longest statement and the longest wait for a position are far shorter. */
export const oldTableSeconds = 300;

/** A snapshot to start from instead of the first event. `log` is needed for the events of its dead letters. */
export interface RebuildStart {
  readonly log: EventLog;
  readonly snapshot: WhichSnapshot;
}

/**
 * Requests a rebuild of a version's table, from the first event or from a snapshot, by any process that maintains the version. The old table
 * serves and stays current meanwhile. The first request wins.
 *
 * @throws RefoldError `INVALID_TRANSITION` if a rebuild is running (the message says who requested it), if there is nothing to rebuild, or no such
 *   snapshot; `PROJECTION_CHANGED` if the table, or the snapshot's, is declared here differently.
 */
export async function requestRebuild(
  db: Database,
  projection: Projection,
  readSchema: string,
  step: TransitionReason,
  from?: RebuildStart,
): Promise<void> {
  const { name, version } = projection;
  await db.transaction(async (tx) => {
    const { state, generation, heldReason } = await expectRebuildable(tx, projection);
    const snapshot = from && (await expectSnapshot(tx, projection, from.snapshot));
    const tableName = `${name}_v${version}_g${generation + 1}`;
    await insertRebuild(tx, {
      name,
      version,
      form: 'beside',
      tableName,
      startAt: snapshot?.checkpoint ?? projection.startAfter,
      anchor: snapshot?.anchor ?? null,
      snapshotId: snapshot?.id ?? null,
      stateBefore: null,
      ...step,
    });
    await dropNever(tx, readSchema, tableName);
    const stored = storedIn(projection, tableName);
    await createTableFrom(tx, readSchema, stored, snapshot);
    if (from) await redeliverInherited(tx, { log: from.log, readSchema, projection: stored });
    await recordOperation(
      tx,
      { name, version, state, heldReason },
      {
        actor: step.actor,
        reason: `rebuild asked for${snapshot ? `, from snapshot ${snapshot.id} at position ${snapshot.checkpoint}` : ''}: ${step.reason}`,
      },
    );
  });
}

/**
 * Returns a version whose table can be rebuilt, locked.
 *
 * @throws RefoldError `INVALID_TRANSITION` if a rebuild is running (the message says by whom) or impossible; `PROJECTION_CHANGED` if its table is
 *   declared here differently, so no deployed process could fill it
 */
export async function expectRebuildable(
  tx: Queryable,
  projection: Projection,
  form: RebuildForm = 'beside',
): Promise<LockedVersion> {
  const { name, version } = projection;
  const found = await expectDeclaredTable(tx, projection);
  const other = (await readAllRebuilds(tx)).find((one) => one.name === name && one.version === version);
  // After a failed rebuild in place, the table may be gone, and starting again is the only way out.
  const again = form === 'in place' && other?.form === 'in place' && found.state === 'failed';
  if (other && !again)
    throw new RefoldError(
      'INVALID_TRANSITION',
      `${name}@${version} is being rebuilt already: ${other.requestedBy} asked for it at ${other.requestedAt} (${other.reason}); ${other.owner ?? 'nobody yet'} works on it.`,
      { name, version, requestedBy: other.requestedBy },
    );
  if (found.state === 'building')
    throw refused(name, version, 'is being built for the first time; there is nothing to rebuild.');
  if (found.state === 'retired')
    throw refused(name, version, `is retired; only a version that is maintained can be rebuilt.`);
  refusePaused(name, version, found);
  return found;
}

/**
 * Ends a rebuild beside the version's table, and discards it.
 *
 * @throws RefoldError `INVALID_TRANSITION` if there is none, or if it is a rebuild in place, which has no old table to return to.
 */
export async function cancelRebuild(
  db: Database,
  name: string,
  version: number,
  readSchema: string,
  step: TransitionReason,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { state, heldReason } = await expectVersion(tx, name, version);
    const ended = await deleteRebuild(tx, name, version, 'beside');
    if (!ended) throw refused(name, version, await whyNotCancelled(tx, name, version));
    await forgetLeftOut(tx, ended.tableName);
    await dropLater(tx, readSchema, ended.tableName, 0);
    await recordOperation(
      tx,
      { name, version, state, heldReason },
      {
        actor: step.actor,
        reason: `rebuild cancelled: ${step.reason}`,
      },
    );
  });
}

/**
 * Lets the table of a rebuild that waits for an operator take over, with its dead letters.
 *
 * @throws RefoldError `INVALID_TRANSITION` if none waits
 */
export async function acceptRebuild(
  db: Database,
  name: string,
  version: number,
  step: TransitionReason,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { state, heldReason } = await expectVersion(tx, name, version);
    if (!(await acceptDeadLetters(tx, name, version)))
      throw refused(name, version, `has no rebuild that waits because of dead letters; look at 'refold status'.`);
    const reason = `dead letters of the rebuild accepted: ${step.reason}`;
    await recordOperation(tx, { name, version, state, heldReason }, { actor: step.actor, reason });
  });
}

async function whyNotCancelled(tx: Queryable, name: string, version: number): Promise<string> {
  const inPlace = (await readAllRebuilds(tx)).some((one) => one.name === name && one.version === version);
  return inPlace
    ? `is being rebuilt in place: its old rows are gone, so there is nothing to go back to. It goes on by itself, also after a crash and with fixed code; 'refold status' shows how far it is.`
    : 'is not being rebuilt.';
}
