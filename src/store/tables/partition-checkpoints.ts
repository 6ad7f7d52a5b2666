import { sql } from 'kysely';
import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { keysText, type Projection } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { Database } from '../postgres/database.ts';
import { insertChanges } from '../processors/changes.ts';
import {
  type Advance,
  advanceCheckpoint,
  anchorOf,
  expectClaim,
  fenced,
  type ProcessorClaim,
} from '../processors/checkpoints.ts';
import { type RegisteredVersion, readVersion, shareState } from '../registry/registry.ts';
import { distributedWith, isDistributed } from '../statements/placed.ts';
import { type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';

/**
 * The checkpoints of versions whose rows a Citus cluster distributes by partition. A batch is one transaction of the worker that has the partition:
 * it is fenced by the checkpoint beside the rows, and moves it. Then a second transaction records it in the registry, on another worker. So rows are
 * never behind the checkpoint that readers know. If the second one does not happen, the next owner does it when it claims the partition.
 */

/** The keys that a batch changed, as `keysText` writes them. */
export interface ChangedKeys {
  readonly upserted: string;
  readonly deleted: string;
}

/** What belongs to a batch of a partition until it is recorded. */
export interface WrittenBatch extends Advance {
  readonly anchor: string | null;
}

/**
 * Moves the checkpoint beside the rows, in the transaction that writes them. The row lock keeps a new owner from starting in between.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if another owner took over
 */
export async function advancePartition(
  tx: Queryable,
  tableName: string,
  advance: Advance,
  changed: ChangedKeys | null,
): Promise<WrittenBatch> {
  const { claim, from, to, events, rows, busyMs } = advance;
  const anchor = (await anchorOf(tx, claim, to))?.text ?? null;
  const work = JSON.stringify({ from: from.toString(), events, rows, busyMs });
  const keys = changed === null ? '' : `,"upserted":${changed.upserted},"deleted":${changed.deleted}`;
  const moved = await tx.query({
    name: 'advance partition',
    text: `
      update ${distributedWith}
      set checkpoint = $5, anchor = $6, batch = $7
      where partition = $1 and table_name = $2 and epoch = $3 and checkpoint = $4
      returning partition`,
    values: [claim.partition, tableName, claim.epoch, from, to, anchor, `${work.slice(0, -1)}${keys}}`],
  });
  if (moved.length === 0) throw fenced(claim);
  return { ...advance, anchor };
}

/** Records a batch whose rows are committed. @throws RefoldError `PROCESSOR_FENCED` if another owner took over */
export function recordBatch(
  db: Database,
  batch: WrittenBatch,
  state: VersionState,
  changed: ChangedKeys,
): Promise<void> {
  return db.transaction(async (tx) => {
    const now = state === 'building' ? ((await shareState(tx, batch.claim)) ?? state) : state;
    await recordWithin(tx, batch, now, changed);
  });
}

async function recordWithin(
  tx: Queryable,
  batch: WrittenBatch,
  state: VersionState,
  { upserted, deleted }: ChangedKeys,
): Promise<void> {
  const { claim, to } = batch;
  await advanceCheckpoint(tx, batch);
  if (state !== 'building' && upserted.length + deleted.length > '[][]'.length)
    await insertChanges(tx, claim, to, upserted, deleted);
}

/**
 * Makes the owner of a claim that of the rows, too: batches of former owners fail from now on, and one that is being committed ends first. Records
 * what a former owner has written but could not record.
 *
 * @param projection the version with the table that it has
 * @throws RefoldError `PROCESSOR_FENCED` if another owner took over, or if something was recorded: the next claim continues from there
 */
export async function claimPartition(db: Database, projection: Projection, claim: ProcessorClaim): Promise<void> {
  const { name, version, tableName } = projection;
  const rows = await db.query<ClaimedRows>({
    text: `
      update ${distributedWith}
      set epoch = $3, checkpoint = coalesce(checkpoint, $4)
      where partition = $1 and table_name = $2 and epoch < $3
      returning checkpoint, anchor, batch, rewritten`,
    values: [claim.partition, tableName, claim.epoch, claim.checkpoint],
  });
  const [found] = rows;
  if (!found) throw fenced(claim);
  if (found.checkpoint === claim.checkpoint && !found.rewritten) return;
  await db.transaction(async (tx) => {
    await expectClaim(tx, claim);
    if (found.checkpoint !== claim.checkpoint) await recordFound(tx, claim, found);
    if (!found.rewritten) return;
    await raiseGeneration(tx, claim);
    await tx.query({
      text: `update ${distributedWith} set rewritten = false where partition = $1 and table_name = $2`,
      values: [claim.partition, tableName],
    });
  });
  if (found.checkpoint === claim.checkpoint) return;
  throw new RefoldError(
    'PROCESSOR_FENCED',
    `${projection.id}: the last batch of the former owner of partition ${claim.partition} is recorded now.`,
    { name, version, mode: 'recorded' },
  );
}

type ClaimedRows = Pick<TableRow<'refold.partition_checkpoints'>, 'anchor' | 'batch' | 'rewritten'> & {
  readonly checkpoint: GlobalPosition; // set by the claim
};

/** The rows are right: the checkpoint in the registry follows them, also back, if the worker has lost its last transactions. */
async function recordFound(tx: Queryable, claim: ProcessorClaim, { checkpoint, anchor, batch }: ClaimedRows) {
  const move = { claim, from: claim.checkpoint, to: checkpoint, anchor };
  const state = (await shareState(tx, claim)) ?? 'building';
  if (batch && globalPosition(batch.from) === claim.checkpoint) {
    const { events, rows, busyMs, upserted, deleted } = batch;
    const keys = { upserted: keysText(upserted ?? []), deleted: keysText(deleted ?? []) };
    await recordWithin(tx, { ...move, events, rows, busyMs }, state, keys);
    if (upserted || state === 'building') return;
  } else await advanceCheckpoint(tx, { ...move, events: 0, rows: 0, busyMs: 0 });
  await raiseGeneration(tx, claim); // which rows changed is unknown
}

/** Subscribers read all rows again. */
async function raiseGeneration(tx: Queryable, { name, version }: ProcessorClaim): Promise<void> {
  await run(
    tx,
    refoldTables
      .updateTable('refold.projections')
      .set({ generation: sql`generation + 1` })
      .where('name', '=', name)
      .where('version', '=', version),
  );
}

/**
 * Keeps the rows of all partitions from changing until the transaction ends, as those of a rebuild: its batches write to several workers, and may be
 * committed on some of them later than on others.
 */
export async function lockRows(tx: Queryable, tableName: string): Promise<void> {
  await tx.query({
    name: 'lock rows of partitions',
    text: `update ${distributedWith} set epoch = epoch where table_name = $1`,
    values: [tableName],
  });
}

/**
 * Announces rows that are written outside of a batch, before they are. Owners lose their claims. The next owner waits for the end of this
 * transaction on all workers, and lets subscribers read again. The caller holds the locks on the processors.
 */
export async function announceRewrite(tx: Queryable, tableName: string): Promise<void> {
  await tx.query({
    text: `update ${distributedWith} set epoch = epoch + 1, rewritten = true where table_name = $1`,
    values: [tableName],
  });
}

/** A version as {@link readVersion} returns it, with the positions that its rows have in this snapshot: the registry may not have them yet. */
export async function readVersionOfRows(
  snapshot: Queryable,
  projection: Pick<Projection, 'name' | 'version' | 'partitions'>,
): Promise<RegisteredVersion | undefined> {
  const found = await readVersion(snapshot, projection);
  if (!found || !isDistributed(snapshot, projection)) return found;
  const rows = await snapshot.query<Pick<TableRow<'refold.partition_checkpoints'>, 'partition' | 'checkpoint'>>({
    text: `select partition, checkpoint from ${distributedWith} where table_name = $1`,
    values: [found.tableName],
  });
  const positions = new Map(rows.map(({ partition, checkpoint }) => [partition, checkpoint]));
  const partitions = found.partitions.map((one) => ({
    ...one,
    checkpoint: positions.get(one.partition) ?? one.checkpoint,
  }));
  return { ...found, partitions };
}
