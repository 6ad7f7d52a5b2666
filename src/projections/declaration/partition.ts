import { invalidDeclaration } from '../../errors.ts';
import type { Columns } from '../columns/column.ts';

/** More would cost more readings of the log than they save in folding. */
const mostPartitions = 64;

/**
 * The partition that a key belongs to, by the text of the key (`keyText`): FNV-1a of its UTF-16 code units, 32 bits, mixed by the end of
 * MurmurHash3, modulo the number of partitions. Never to be changed: what is folded was folded by it.
 */
export function partitionOf(text: string, partitions: number): number {
  if (partitions === 1) return 0;
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  // The low bits of FNV alone are poor, and the modulo looks at little else.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % partitions;
}

/** Where the partitions of a version stood when their number was changed. */
export interface FloorLayer {
  /** How many there were. */
  readonly of: number;
  /** Of each, in order. */
  readonly checkpoints: readonly bigint[];
}

/** One partition of a version. */
export interface Partition {
  readonly partition: number;
  /** Of how many. */
  readonly partitions: number;
  readonly checkpoint: bigint;
  /** What was folded beyond the checkpoint when there was another number of partitions. */
  readonly floors: readonly FloorLayer[];
}

/** Up to which position the events of a key were folded before there were as many partitions as now. */
export function floorOf(text: string, floors: readonly FloorLayer[]): bigint {
  let floor = 0n;
  for (const { of, checkpoints } of floors) {
    const checkpoint = checkpoints[partitionOf(text, of)] ?? 0n;
    if (checkpoint > floor) floor = checkpoint;
  }
  return floor;
}

/** Up to which position the row of a key is folded. */
export function reachedBy(text: string, partitions: readonly Partition[]): bigint {
  const own = partitions[partitionOf(text, partitions.length)];
  if (!own) return 0n;
  const floor = floorOf(text, own.floors);
  return floor > own.checkpoint ? floor : own.checkpoint;
}

/** The furthest position that any row is folded up to. */
export function furthest(partitions: readonly Partition[]): bigint {
  const all = partitions.flatMap(({ checkpoint, floors }) => [
    checkpoint,
    ...floors.flatMap(({ checkpoints }) => checkpoints),
  ]);
  return all.reduce((most, position) => (position > most ? position : most), 0n);
}

/** The option `partitions`, checked. @throws RefoldError `INVALID_DECLARATION` */
export function partitionsOption(
  subject: string,
  partitions: number | undefined,
  { table, evolveSql }: { readonly table: Columns; readonly evolveSql?: unknown },
): number {
  if (partitions === undefined || partitions === 1) return 1;
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > mostPartitions)
    throw invalidDeclaration(
      subject,
      `'partitions' is a whole number from 1 to ${mostPartitions}, found ${String(partitions)}.`,
    );
  if (evolveSql)
    throw invalidDeclaration(
      subject,
      `'partitions' split the rows by key, and 'evolveSql' makes them for a whole batch. Leave 'partitions' out, or declare 'key' and 'evolve'.`,
    );
  const unique = Object.entries(table).find(([, { flags }]) => flags.unique && !flags.primaryKey)?.[0];
  if (unique !== undefined)
    throw invalidDeclaration(
      subject,
      `'${unique}' is unique over all rows, but partitions are not at the same position: a value may be taken before it is given up. Declare it with .index(), or leave 'partitions' out.`,
    );
  return partitions;
}
