import { invalidDeclaration } from '../../errors.ts';
import type { Columns } from '../columns/column.ts';

/** With more partitions, reading the log once per partition costs more than the parallel folding saves. */
const maxPartitions = 64;

/**
 * The partition of a key, computed from the key's text (`keyText`): FNV-1a over its UTF-16 code units, 32 bits, mixed with the finalizer of
 * MurmurHash3, modulo the number of partitions. Never change it: existing rows and checkpoints depend on it.
 */
export function partitionOf(text: string, partitions: number): number {
  if (partitions === 1) return 0;
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  // The low bits of FNV alone are poorly distributed, and the modulo depends mostly on them.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % partitions;
}

/** The checkpoints of a version's partitions at the moment when their number changed. */
export interface FloorLayer {
  /** The number of partitions at that time. */
  readonly of: number;
  /** One per partition, in order. */
  readonly checkpoints: readonly bigint[];
}

/** One partition of a version. */
export interface Partition {
  readonly partition: number;
  /** The number of partitions of the version. */
  readonly partitions: number;
  readonly checkpoint: bigint;
  /** Positions that were folded beyond the checkpoint when the version had another number of partitions. */
  readonly floors: readonly FloorLayer[];
}

/** The position up to which a key's events were folded before the version had its current number of partitions. */
export function floorOf(text: string, floors: readonly FloorLayer[]): bigint {
  let floor = 0n;
  for (const { of, checkpoints } of floors) {
    const checkpoint = checkpoints[partitionOf(text, of)] ?? 0n;
    if (checkpoint > floor) floor = checkpoint;
  }
  return floor;
}

/** The position up to which the row of a key is folded. */
export function reachedBy(text: string, partitions: readonly Partition[]): bigint {
  const own = partitions[partitionOf(text, partitions.length)];
  if (!own) return 0n;
  const floor = floorOf(text, own.floors);
  return floor > own.checkpoint ? floor : own.checkpoint;
}

/** The highest position that any row is folded up to. */
export function furthest(partitions: readonly Partition[]): bigint {
  const all = partitions.flatMap(({ checkpoint, floors }) => [
    checkpoint,
    ...floors.flatMap(({ checkpoints }) => checkpoints),
  ]);
  return all.reduce((most, position) => (position > most ? position : most), 0n);
}

/** Checks the option `partitions`. @throws RefoldError `INVALID_DECLARATION` */
export function partitionsOption(
  subject: string,
  partitions: number | undefined,
  { table, evolveSql }: { readonly table: Columns; readonly evolveSql?: unknown },
): number {
  if (partitions === undefined || partitions === 1) return 1;
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > maxPartitions)
    throw invalidDeclaration(
      subject,
      `'partitions' is a whole number from 1 to ${maxPartitions}, found ${String(partitions)}.`,
    );
  if (evolveSql)
    throw invalidDeclaration(
      subject,
      `'partitions' split the rows by key, and 'evolveSql' folds a whole batch at once. Leave 'partitions' out, or declare 'key' and 'evolve'.`,
    );
  const unique = Object.entries(table).find(([, { flags }]) => flags.unique && !flags.primaryKey)?.[0];
  if (unique !== undefined)
    throw invalidDeclaration(
      subject,
      `'${unique}' is unique over all rows, but partitions are at different positions, so one could write a value that another has not released yet. Declare it with .index(), or leave 'partitions' out.`,
    );
  return partitions;
}
