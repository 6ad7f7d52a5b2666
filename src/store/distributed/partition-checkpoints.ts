import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { Database } from '../postgres/database.ts';
import { insertChanges } from '../processors/changes.ts';
import { type Advance, advanceCheckpoint, anchorOf, fenced, type ProcessorClaim } from '../processors/checkpoints.ts';
import { type RegisteredVersion, readVersion, shareState } from '../registry/registry.ts';
import { distributedWith, isDistributed } from '../statements/placed.ts';
import type { Queryable, TableRow } from '../statements/statement.ts';

/**
 * The checkpoints of versions whose rows a Citus cluster distributes by partition. A batch is one transaction of the worker that has the partition:
 * it is fenced by the checkpoint beside the rows, and moves it. Then a second transaction records it in the registry, on another worker. So rows are
 * never behind the checkpoint that readers know. If the second one does not happen, the next owner does it when it claims the partition
 * (`claimed-partitions.ts`).
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
  const anchor = (await anchorOf(tx, claim, from, to))?.text ?? null;
  const work = JSON.stringify({ from: from.toString(), events, rows, busyMs });
  const keys = changed === null ? '' : `,"upserted":${changed.upserted},"deleted":${changed.deleted}`;
  const moved = await tx.query({
    name: 'advance partition',
    text: `
      update ${distributedWith}
      set
        checkpoint = $5,
        anchor = $6,
        batch = (coalesce(batch, '{}') - array['upserted', 'deleted']) || $7 -- keeps what was left out last
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

/** Like {@link recordBatch}, within the caller's transaction. */
export async function recordWithin(
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

/** An event that a batch leaves out of a row. `from`: the checkpoint before the batch. */
export interface LeftOut {
  readonly from: GlobalPosition;
  readonly position: GlobalPosition;
  /** As `keyText` writes it; null if the event leads to no key. */
  readonly key: string | null;
}

/** Remembers beside the rows the last event that was left out of one: what is recorded of it is on the registry's worker. */
export async function noteLeftOut(
  tx: Queryable,
  { partition }: ProcessorClaim,
  tableName: string,
  { from, position, key }: LeftOut,
): Promise<void> {
  const leftOut = `{"leftOut":{"from":"${from}","position":"${position}","key":${key}}}`;
  await tx.query({
    text: `update ${distributedWith} set batch = batch || $3 where partition = $1 and table_name = $2`,
    values: [partition, tableName, leftOut],
  });
}

/**
 * Moves the checkpoints of all partitions of a rebuild, whose batches write to several workers and may be committed on some of them later than on
 * others. Keeps the rows from changing until the transaction ends.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if a worker has other rows than those of the last batch
 */
export async function advanceRebuild(
  tx: Queryable,
  { tableName, partitions }: Pick<Projection, 'tableName' | 'partitions'>,
  { claim, from, to }: Pick<Advance, 'claim' | 'from' | 'to'>,
): Promise<void> {
  const moved = await tx.query({
    name: 'advance rebuild of partitions',
    text: `update ${distributedWith} set checkpoint = $3 where table_name = $1 and checkpoint = $2 returning partition`,
    values: [tableName, from, to],
  });
  if (moved.length !== partitions) throw fenced(claim);
}

/** The positions that the rows of a table have on the workers. Waits for batches that are not committed on all of them yet. */
export async function settledPositions(db: Queryable, tableName: string): Promise<GlobalPosition[]> {
  const rows = await db.query<{ checkpoint: GlobalPosition }>({
    text: `update ${distributedWith} set epoch = epoch where table_name = $1 returning checkpoint`,
    values: [tableName],
  });
  return rows.map(({ checkpoint }) => checkpoint);
}

/**
 * Announces rows that are written outside of a batch, before they are. Owners lose their claims. The next owner waits for the end of this
 * transaction on all workers, and lets subscribers read again. The caller holds the locks on the processors.
 */
export async function announceRewrite(
  tx: Queryable,
  { name, version, tableName }: Pick<Projection, 'name' | 'version' | 'tableName'>,
): Promise<void> {
  await tx.query({
    text: `
      update ${distributedWith}
      set epoch = epoch + 1, rewritten = true, rewrites = rewrites + 1
      where table_name = $1`,
    values: [tableName],
  });
  await tx.query({
    text: 'update refold.processors set rewrites = rewrites + 1 where name = $1 and version = $2',
    values: [name, version],
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
