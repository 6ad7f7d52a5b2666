import { invalidDeclaration } from '../../errors.ts';
import type { Columns } from '../columns/column.ts';

/** With more partitions, reading the log once per partition costs more than the parallel folding saves. */
const maxPartitions = 64;

/**
 * The partition of a key, from the hash of the key's text (`keyText`). Never change it: existing rows and checkpoints depend on it, and
 * `evolveSql` computes it in SQL.
 */
export function partitionOf(text: string, partitions: number): number {
  return partitions === 1 ? 0 : textHash(text) % partitions;
}

/** The hash of a text as PostgreSQL computes it, `hashtext(text)::bigint & 4294967295`: lookup3 of Bob Jenkins over the bytes of UTF-8. */
export function textHash(text: string): number {
  // Most keys are ASCII, whose bytes are their code units.
  const bytes = /\P{ASCII}/u.test(text) ? Buffer.from(text, 'utf8') : undefined;
  const length = bytes?.length ?? text.length;
  const at = (index: number) => (index >= length ? 0 : (bytes?.[index] ?? text.charCodeAt(index)));
  const word = (index: number) => at(index) | (at(index + 1) << 8) | (at(index + 2) << 16) | (at(index + 3) << 24);
  let a = (0x9e3779b9 + length + 3_923_095) | 0;
  let b = a;
  let c = a;
  let index = 0;
  for (; length - index >= 12; index += 12) {
    a = (a + word(index)) | 0;
    b = (b + word(index + 4)) | 0;
    c = (c + word(index + 8)) | 0;
    a = ((a - c) | 0) ^ rotated(c, 4);
    c = (c + b) | 0;
    b = ((b - a) | 0) ^ rotated(a, 6);
    a = (a + c) | 0;
    c = ((c - b) | 0) ^ rotated(b, 8);
    b = (b + a) | 0;
    a = ((a - c) | 0) ^ rotated(c, 16);
    c = (c + b) | 0;
    b = ((b - a) | 0) ^ rotated(a, 19);
    a = (a + c) | 0;
    c = ((c - b) | 0) ^ rotated(b, 4);
    b = (b + a) | 0;
  }
  a = (a + word(index)) | 0;
  b = (b + word(index + 4)) | 0;
  // The lowest byte of the last word stays free for the length.
  c = (c + (word(index + 8) << 8)) | 0;
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  c = ((c ^ b) - rotated(b, 24)) | 0;
  return c >>> 0;
}

function rotated(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
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
  { table }: { readonly table: Columns },
): number {
  if (partitions === undefined || partitions === 1) return 1;
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > maxPartitions)
    throw invalidDeclaration(
      subject,
      `'partitions' is a whole number from 1 to ${maxPartitions}, found ${String(partitions)}.`,
    );
  const unique = Object.entries(table).find(([, { flags }]) => flags.unique && !flags.primaryKey)?.[0];
  if (unique !== undefined)
    throw invalidDeclaration(
      subject,
      `'${unique}' is unique over all rows, but partitions are at different positions, so one could write a value that another has not released yet. Declare it with .index(), or leave 'partitions' out.`,
    );
  return partitions;
}
