import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { furthest } from '../../projections/projection/partition.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readEventsFolded } from '../../store/registry/rebuilds.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { logOperation, recordOperation } from '../../store/registry/transitions.ts';
import { readLostHistory } from '../../store/statements/log-anchors.ts';
import { logOf, type Queryable } from '../../store/statements/statement.ts';
import {
  deleteTableSnapshot,
  fillFromSnapshot,
  insertTableSnapshot,
  lockTableSnapshot,
  readMisfit,
  readTableSnapshots,
  type TableSnapshot,
  type WhichSnapshot,
} from '../../store/tables/table-snapshots.ts';
import { closeGateBriefly, maxIdleMs } from '../versions/closed-gate.ts';
import { expectVersion, refuseDistributed, refused, type TransitionReason } from '../versions/expect-version.ts';
import { betweenAppends } from '../versions/leave-inline.ts';
import { createVersionTables, dropVersionTable } from '../versions/version-tables.ts';

export interface TakeSnapshotOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly name: string;
  readonly version: number;
  /** Whether the declared schedule takes it. */
  readonly automatic?: boolean;
}

/**
 * Copies a version's read table, its position and its dead letters as of one moment, while its processor continues. Of an inline version it is a
 * moment between appends, which wait for some milliseconds.
 *
 * @throws RefoldError `INVALID_TRANSITION` if the version has no table; `DATABASE_ERROR` with `sqlState` 55P03 if it is inline and a
 *   transaction that has appended to it stays open
 */
export async function takeSnapshot(options: TakeSnapshotOptions, step: TransitionReason): Promise<TableSnapshot> {
  const { db, name, version } = options;
  return betweenAppends(db, { name, version }, (isLive) =>
    db.transaction(async (tx) => copyTable(tx, options, step, isLive ? await beginBetweenAppends(db, tx) : null), {
      isolation: 'repeatable read',
    }),
  );
}

/** Begins the snapshot of a transaction while no append is under way. Returns the position of everything in it. */
function beginBetweenAppends(db: Database, reader: Queryable): Promise<GlobalPosition> {
  return db.transaction(
    async (tx) => {
      const last = await closeGateBriefly(tx);
      // Its first statement: the snapshot is that of this moment, and the appends go on.
      await readVersion(reader, { name: '', version: 0 });
      return last;
    },
    { idleTimeoutMs: maxIdleMs },
  );
}

/**
 * @param last the end of the log if the snapshot of the transaction began between appends; null if it did not
 * @returns undefined if appends fold into the version, and its table has no single position in this snapshot
 */
async function copyTable(
  tx: Queryable,
  { readSchema, name, version, automatic = false }: TakeSnapshotOptions,
  step: TransitionReason,
  last: GlobalPosition | null,
): Promise<TableSnapshot | undefined> {
  const found = await readVersion(tx, { name, version });
  if (!found) throw refused(name, version, `is not in the registry; 'refold status' lists the versions.`);
  if (found.state === 'retired' || found.state === 'failed')
    throw refused(name, version, `is ${found.state}; only a version that is maintained can have a snapshot taken.`);
  refuseDistributed(tx, found, 'a snapshot');
  if (found.inline === 'leaving' || (found.inline === 'live' && last === null)) return undefined;
  const checkpoint = found.inline === 'live' && last !== null ? last : found.checkpoint;
  if (furthest(found.partitions) > checkpoint)
    throw refused(
      name,
      version,
      'is processed in partitions, which are at different positions at this moment. Take the snapshot again.',
    );
  const taken = await insertTableSnapshot(tx, {
    name,
    version,
    readSchema,
    source: found.tableName,
    checkpoint,
    eventsFolded: await readEventsFolded(tx, name, version),
    tableFingerprint: found.tableFingerprint,
    codeFingerprint: found.codeFingerprint,
    automatic,
    ...step,
  });
  const reason = `snapshot ${taken.id} taken: ${step.reason}`;
  if (!automatic) await logOperation(tx, { name, version, state: found.state }, { actor: step.actor, reason });
  return taken;
}

/** Returns the snapshots of a version, or of all versions; newest first within a version. Counts dead letters up to `countUpTo`. @default all */
export function listSnapshots(
  db: Database,
  name?: string,
  version?: number,
  countUpTo: number | null = null,
): Promise<TableSnapshot[]> {
  return readTableSnapshots(db, name, version, countUpTo);
}

/** Drops a snapshot and its copy of the table. @throws RefoldError `INVALID_TRANSITION` if there is none */
export async function dropSnapshot(
  db: Database,
  name: string,
  version: number,
  id: bigint,
  step: TransitionReason,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { state, heldReason } = await expectVersion(tx, name, version);
    const dropped = await deleteTableSnapshot(tx, name, version, id);
    if (!dropped) throw await noSnapshot(tx, name, version, `has no snapshot ${id}`);
    const reason = `snapshot ${id} dropped: ${step.reason}`;
    await recordOperation(tx, { name, version, state, heldReason }, { actor: step.actor, reason });
  });
}

/**
 * Returns the snapshot to start from. Its table must be declared as it is now. The lock keeps it from being dropped until the transaction ends.
 *
 * @throws RefoldError `INVALID_TRANSITION` if there is none, or if other events were discarded when it was taken;
 *   `PROJECTION_CHANGED` if its table was declared differently
 */
export async function expectSnapshot(
  tx: Queryable,
  { id, name, version, tableFingerprint }: Projection,
  which: WhichSnapshot,
): Promise<TableSnapshot> {
  const found = await lockTableSnapshot(tx, name, version, which);
  if (!found) throw await noSnapshot(tx, name, version, `has no snapshot${described(which)}`);
  if (found.tableFingerprint !== tableFingerprint)
    throw new RefoldError(
      'PROJECTION_CHANGED',
      `${id}: snapshot ${found.id} was taken of a table that was declared differently, so its rows don't fit. Rebuild from the whole log ('refold rebuild ${id}'), or from a snapshot of the table as it is declared now.`,
      { name, version, snapshot: found.id.toString() },
    );
  // In a read store, a snapshot stays when the log loses events.
  if ((await readLostHistory(logOf(tx), found.checkpoint, found.anchor)).lost !== null)
    throw refused(
      name,
      version,
      `has snapshot ${found.id}, whose rows have taken in events that the log has lost. Begin from an older snapshot, or from the whole log: 'refold rebuild ${id}'.`,
    );
  const { recalled, discarded } = await readMisfit(tx, found);
  if (recalled !== null)
    throw refused(
      name,
      version,
      `has snapshot ${found.id}, whose rows lack the event at position ${recalled}, which was discarded then and has been recalled since. ${otherStart(id)}`,
    );
  if (discarded !== null)
    throw refused(
      name,
      version,
      `has snapshot ${found.id}, whose rows have taken in the event at position ${discarded}, which has been discarded since. ${otherStart(id)}`,
    );
  return found;
}

/** Creates the table of `projection`, with the snapshot's rows if there is one. */
export async function createTableFrom(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  snapshot: TableSnapshot | undefined,
): Promise<void> {
  await dropVersionTable(tx, projection, readSchema);
  await createVersionTables(tx, [projection], readSchema);
  if (snapshot) await fillFromSnapshot(tx, readSchema, projection, snapshot);
}

function otherStart(id: string): string {
  return `Begin from a snapshot below that position, or from the whole log: 'refold rebuild ${id}'.`;
}

function described(which: WhichSnapshot): string {
  if (which === 'latest') return '';
  return 'id' in which ? ` ${which.id}` : ` at or below position ${which.upTo}`;
}

async function noSnapshot(tx: Queryable, name: string, version: number, problem: string): Promise<RefoldError> {
  const all = await readTableSnapshots(tx, name, version);
  const known = all.map(({ id, checkpoint }) => `${id} (position ${checkpoint})`).join(', ');
  const wayOut = known === '' ? `Take one with 'refold snapshot take ${name}@${version}'` : `It has ${known}`;
  return refused(name, version, `${problem}. ${wayOut}; without a snapshot, a rebuild folds the whole log.`);
}
