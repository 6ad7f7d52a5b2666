import type { FloorLayer, Partition } from '../../projections/projection/partition.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { StoredFloors } from '../statements/stored-json.ts';

export function readFloors(stored: StoredFloors | null): FloorLayer[] {
  return (stored?.layers ?? []).map(({ of, checkpoints }) => ({ of, checkpoints: checkpoints.map(BigInt) }));
}

/** A position with its anchor, if that is known. */
interface Anchored {
  readonly position: bigint;
  readonly anchor: string | null;
}

interface LockedPartition extends Partition {
  /** The anchor of the checkpoint. */
  readonly anchor: string | null;
  /** The highest of the floors. */
  readonly until: Anchored | null;
}

/** Reads the partitions of a version in order, and locks their checkpoints until the transaction ends. */
export async function lockPartitions(db: Queryable, name: string, version: number): Promise<LockedPartition[]> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.processors')
      .select(['partition', 'partitions', 'checkpoint', 'anchor', 'floors'])
      .where('name', '=', name)
      .where('version', '=', version)
      .orderBy('partition')
      .forUpdate(),
  );
  return rows.map(({ floors, ...row }) => ({
    ...row,
    floors: readFloors(floors),
    until: floors && { position: BigInt(floors.until), anchor: floors.anchor ?? null },
  }));
}

/**
 * Changes the number of partitions of a version without folding a row again. Each new partition starts at the lowest of the old checkpoints
 * and stores the old checkpoints as floors: it skips what was already folded. Former owners can no longer write. The anchors of the lowest and of the
 * highest checkpoint stay with them, so new owners notice lost events as the former ones would.
 */
export async function changePartitions(
  db: Queryable,
  name: string,
  version: number,
  partitions: number,
): Promise<void> {
  const before = await lockPartitions(db, name, version);
  const { start, anchor, floors } = startOf(before);
  // A separate statement: an insert in the statement of the delete would conflict with the rows that it deletes.
  const [former] = await db.query<{ epoch: bigint; events: bigint; rows: bigint; skipped: bigint; retries: bigint }>({
    text: `
      with former as (
        delete from refold.processors
        where name = $1 and version = $2
        returning epoch, events_folded, rows_written, events_skipped, retries
      )
      select
        max(epoch) as epoch,
        sum(events_folded)::bigint as events,
        sum(rows_written)::bigint as rows,
        sum(events_skipped)::bigint as skipped,
        sum(retries)::bigint as retries
      from former`,
    values: [name, version],
  });
  await db.query({
    text: `
      with moved as (
        update refold.projections
        set generation = generation + 1
        where name = $1 and version = $2
      )
      insert into refold.processors
        (name, version, partition, partitions, checkpoint, epoch, floors, events_folded, rows_written, events_skipped, retries, anchor)
      select
        $1, $2, partition, $3, $4, $5, $6,
        case when partition = 0 then $7::bigint else 0 end,
        case when partition = 0 then $8::bigint else 0 end,
        case when partition = 0 then $9::bigint else 0 end,
        case when partition = 0 then $10::bigint else 0 end,
        $11
      from generate_series(0, $3 - 1) as partition`,
    values: [
      name,
      version,
      partitions,
      start,
      (former?.epoch ?? 0n) + 1n,
      floors,
      former?.events ?? 0n,
      former?.rows ?? 0n,
      former?.skipped ?? 0n,
      former?.retries ?? 0n,
      anchor,
    ],
  });
}

/** Where new partitions begin: the lowest checkpoint, and what the former ones have folded beyond it. */
function startOf(before: readonly LockedPartition[]) {
  const checkpoints = before.map(({ checkpoint }) => checkpoint);
  const start = checkpoints.reduce((least, checkpoint) => (checkpoint < least ? checkpoint : least));
  const layers = distinct([...before.flatMap(({ floors }) => floors), { of: before.length, checkpoints }]).filter(
    (layer) => layer.checkpoints.some((checkpoint) => checkpoint > start),
  );
  const until = layers
    .flatMap((layer) => layer.checkpoints)
    .reduce((most, position) => (position > most ? position : most), start as bigint);
  const reached: readonly Anchored[] = before.flatMap(({ checkpoint, anchor, until }) => [
    { position: checkpoint, anchor },
    ...(until ? [until] : []),
  ]);
  const stored = { until, anchor: anchorAt(until, reached), layers };
  const floors =
    layers.length === 0
      ? null
      : JSON.stringify(stored, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
  return { start, anchor: anchorAt(start, reached), floors };
}

/** The anchor of one of these positions. That of a lost history comes first: its events are not known to be there at any position. */
function anchorAt(at: bigint, reached: readonly Anchored[]): string | null {
  const anchors = reached.flatMap(({ position, anchor }) => (position === at && anchor !== null ? [anchor] : []));
  return anchors.find((anchor) => anchor.endsWith('.lost')) ?? anchors[0] ?? null;
}

function distinct(layers: readonly FloorLayer[]): FloorLayer[] {
  return [...new Map(layers.map((layer) => [`${layer.of} ${layer.checkpoints.join()}`, layer])).values()];
}
