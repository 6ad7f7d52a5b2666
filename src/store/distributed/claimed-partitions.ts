import { sql } from 'kysely';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { partitionOf } from '../../projections/projection/partition.ts';
import { keysText, keyText, type Projection } from '../../projections/projection/projection.ts';
import type { Database } from '../postgres/database.ts';
import { advanceCheckpoint, expectClaim, fenced, type ProcessorClaim } from '../processors/checkpoints.ts';
import { deleteDeadLetters, readDeadLetters } from '../processors/dead-letters.ts';
import { lockVersion } from '../registry/registry.ts';
import { logOperation } from '../registry/transitions.ts';
import type { ProcessorUnit } from '../server/processor-unit.ts';
import { distributedWith } from '../statements/placed.ts';
import { type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';
import type { StoredBatch } from '../statements/stored-json.ts';
import { recordWithin } from './partition-checkpoints.ts';

/** What the claim of a partition has found, if the registry had another checkpoint than the rows. */
export interface FoundPartition {
  /** The position of the rows. */
  readonly checkpoint: GlobalPosition;
  /**
   * - `unrecorded`: the last batch of the former owner is recorded now.
   * - `rows lost`: a worker has lost its last transactions. The registry has gone back to the rows that are left.
   * - `registry lost`: the worker of the registry has. It has followed the rows.
   * - `rows unknown`: one of both has lost dead letters, skipped events or a retry of them. Which events the rows lack is unknown, and nothing is
   *   recorded.
   */
  readonly cause: 'unrecorded' | 'rows lost' | 'registry lost' | 'rows unknown';
}

type ClaimedRows = Pick<
  TableRow<'refold.partition_checkpoints'>,
  'checkpoint' | 'anchor' | 'batch' | 'rewritten' | 'rewrites'
>;

/**
 * Makes the owner of a claim that of the rows, too: batches of former owners fail from now on, and one that is being committed ends first. Records
 * what a former owner has written but could not record, and what a worker has lost. The claim is past if that moved the checkpoint.
 *
 * @param projection the version with the table that it has
 * @param actor for the audit log
 * @returns what has moved the checkpoint, or has to keep the partition from being maintained; null if the rows are those of the checkpoint
 * @throws RefoldError `PROCESSOR_FENCED` if another owner took over
 */
export async function claimPartition(
  db: Database,
  projection: Projection,
  claim: ProcessorClaim,
  actor: string,
): Promise<FoundPartition | null> {
  const rows = await db.query<ClaimedRows>({
    text: `
      update ${distributedWith}
      set epoch = $3
      where partition = $1 and table_name = $2 and epoch < $3
      returning checkpoint, anchor, batch, rewritten, rewrites`,
    values: [claim.partition, projection.tableName, claim.epoch],
  });
  const [found] = rows;
  if (!found) throw fenced(claim);
  if (found.checkpoint === claim.checkpoint && found.rewrites === claim.rewrites && !found.rewritten) return null;
  return db.transaction(async (tx) => {
    // First, as in every transaction that locks both.
    const version = await lockVersion(tx, projection.name, projection.version);
    await expectClaim(tx, claim);
    const cause = await causeOf(tx, projection, claim, found);
    const state = version === undefined || version.state === 'failed' ? 'building' : version.state;
    if (cause === 'unrecorded') await recordFound(tx, claim, found, state);
    if (cause === 'rows lost' || cause === 'registry lost') {
      const reason = `partition ${claim.partition}: ${cause}, checkpoint ${claim.checkpoint} set to ${found.checkpoint}`;
      await logOperation(tx, { ...projection, state: version?.state ?? 'building' }, { actor, reason });
      await follow(tx, projection, claim, found);
    }
    if (found.rewritten) await endRewrite(tx, projection, claim);
    return cause && { checkpoint: found.checkpoint, cause };
  });
}

async function causeOf(
  tx: Queryable,
  { tableName }: Projection,
  { checkpoint, rewrites: registered }: ProcessorClaim,
  { checkpoint: position, batch, rewritten, rewrites }: ClaimedRows,
): Promise<FoundPartition['cause'] | null> {
  if (rewrites !== registered) return 'rows unknown';
  if (position === checkpoint) return null;
  if (position < checkpoint) return 'rows lost';
  const { leftOut } = batch ?? {};
  // An operator may have retried or discarded what was left out.
  if (
    !rewritten &&
    leftOut &&
    globalPosition(leftOut.from) >= checkpoint &&
    !(await isRecorded(tx, tableName, leftOut))
  )
    return 'rows unknown';
  return batch && globalPosition(batch.from) === checkpoint ? 'unrecorded' : 'registry lost';
}

async function isRecorded(
  tx: Queryable,
  tableName: string,
  { position, key }: NonNullable<StoredBatch['leftOut']>,
): Promise<boolean> {
  const found = await tx.query({
    text: `
      select from refold.dead_letters where table_name = $1 and position = $2 and key is not distinct from $3::jsonb
      union all
      select from refold.skips where table_name = $1 and position = $2 and key is not distinct from $3::jsonb`,
    values: [tableName, position, key && keyText(key)],
  });
  return found.length > 0;
}

async function recordFound(
  tx: Queryable,
  claim: ProcessorClaim,
  { checkpoint, anchor, batch }: ClaimedRows,
  state: Parameters<typeof recordWithin>[2],
): Promise<void> {
  if (!batch) return;
  const { events, rows, busyMs, upserted, deleted } = batch;
  const keys = { upserted: keysText(upserted ?? []), deleted: keysText(deleted ?? []) };
  await recordWithin(tx, { claim, from: claim.checkpoint, to: checkpoint, anchor, events, rows, busyMs }, state, keys);
  if (!upserted && state !== 'building') await raiseGeneration(tx, claim);
}

/** The rows are right: the checkpoint in the registry follows them, back or forth. */
async function follow(
  tx: Queryable,
  { tableName, partitions }: Projection,
  claim: ProcessorClaim,
  { checkpoint, anchor }: ClaimedRows,
): Promise<void> {
  // Those events are folded again.
  const letters = await readDeadLetters(tx, tableName);
  const again = letters.filter(
    ({ key, position }) => position > checkpoint && key && partitionOf(keyText(key), partitions) === claim.partition,
  );
  if (again.length > 0)
    await deleteDeadLetters(
      tx,
      again.map(({ id }) => id),
    );
  const move = { claim, from: claim.checkpoint, to: checkpoint, anchor };
  await advanceCheckpoint(tx, { ...move, events: 0, rows: 0, busyMs: 0 });
  await raiseGeneration(tx, claim); // which rows changed is unknown
}

async function endRewrite(tx: Queryable, { tableName }: Projection, claim: ProcessorClaim): Promise<void> {
  await raiseGeneration(tx, claim);
  await tx.query({
    text: `update ${distributedWith} set rewritten = false where partition = $1 and table_name = $2`,
    values: [claim.partition, tableName],
  });
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

/** A unit whose rows have another position on a worker than in the registry. */
export interface DifferingUnit extends ProcessorUnit {
  readonly registered: GlobalPosition;
  /** That of the partition that is furthest behind. */
  readonly checkpoint: GlobalPosition;
  /** How many rewrites the rows have that the registry does not have; negative if they lack some. */
  readonly rewrites: bigint;
}

/**
 * Reads which distributed versions and rebuilds have rows of another position than the registry says: for a moment, those that are being written;
 * for longer, those of a worker that has lost transactions. The registry is read first.
 */
export function readDifferingUnits(db: Queryable): Promise<DifferingUnit[]> {
  return db.query<DifferingUnit>({
    name: 'read differing units',
    text: `
      with registered as materialized (
        select 'processor' as kind, processor.name, processor.version, processor.partition, table_name, checkpoint, rewrites
        from refold.processors as processor
        join refold.projections as projection on projection.name = processor.name and projection.version = processor.version
        where partitions > 1 and state <> 'retired'
        union all
        -- one unit for all partitions
        select 'rebuild', name, version, null, table_name, checkpoint, 0
        from refold.rebuilds
        where form = 'beside'
      )
      select
        kind,
        name,
        version,
        coalesce(registered.partition, 0) as partition,
        registered.checkpoint as registered,
        min(placed.checkpoint) as checkpoint,
        min(placed.rewrites - registered.rewrites) as rewrites
      from registered
      join ${distributedWith} as placed
        on placed.table_name = registered.table_name
        and placed.partition = coalesce(registered.partition, placed.partition)
      where placed.checkpoint <> registered.checkpoint or placed.rewrites <> registered.rewrites
      group by kind, name, version, registered.partition, registered.checkpoint`,
  });
}
