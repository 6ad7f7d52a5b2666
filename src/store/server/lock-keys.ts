import { hash, randomUUID } from 'node:crypto';
import { type ProcessorUnit, unitText } from './processor-unit.ts';

/**
 * Every advisory lock that Refold takes has its key made here (or by the tag trigger of migration 0001, which agrees with
 * {@link tagMagic}). The kind of lock is in the top 16 bits, so that kinds never meet.
 */

/** Marks the keys of appenders' tags: `tagMagic << 48 | position`. 15 bits, so that the bigint key stays positive. */
export const tagMagic = 0x5246;

const processorMagic = 0x5247n;
const registryMagic = 0x5248n;
const viewMagic = 0x524an;
const tableSnapshotMagic = 0x524dn;
const inlineVersionMagic = 0x524fn;
const inlineRowsMagic = 0x5250n;
const inlineRowMagic = 0x5251n;
const inlineLeaveMagic = 0x5252n;
const probeMagic = 0x5253n;

/** The lock of the live owner of a processor; one of 2^48 keys, so that two processors never share one in practice. */
export function processorLockKey(unit: ProcessorUnit): bigint {
  return (processorMagic << 48n) | hash48(unitText(unit));
}

/** Held by whoever registers declared versions, so that processes that start together take turns. */
export const registryLockKey: bigint = registryMagic << 48n;

/** Held while the stable view of a projection is moved. */
export function viewLockKey(name: string): bigint {
  return (viewMagic << 48n) | hash48(`view ${name}`);
}

/** Held while a snapshot of the schedule is taken of a version's read table. */
export function snapshotLockKey(name: string, version: number): bigint {
  return (tableSnapshotMagic << 48n) | hash48(`snapshot ${name}@${version}`);
}

/** Held by the process that owns an embedded server, in that server's database `postgres`. */
export const embeddedOwnerLockKey: bigint = 0x5249n << 48n;

/**
 * The gate of inline projections: every transaction that appends shares it, and a version becomes live under it alone. As
 * `refold.inline_gate()` of the migration.
 */
export const inlineGateKey: bigint = 0x524en << 48n;

/** Shared by appends that fold into a live inline version; whoever has it alone knows that none does. */
export function inlineVersionLockKey(id: string): bigint {
  return (inlineVersionMagic << 48n) | hash48(id);
}

/**
 * Shared by whoever announces that appends leave an inline version, until its transaction ends. As `refold.inline_leave_key()` of the
 * migration.
 */
export function inlineLeaveLockKey(id: string): bigint {
  return (inlineLeaveMagic << 48n) | hash48(id);
}

/** All rows of an inline version: shared by appends that lock rows, alone where the rows are too many, or not known before. */
export function inlineRowsLockKey(id: string): bigint {
  return (inlineRowsMagic << 48n) | hash48(id);
}

/** One row of an inline version, by the text of its key; another row may share it. */
export function inlineRowLockKey(id: string, keyText: string): bigint {
  return (inlineRowMagic << 48n) | hash48(`${id} ${keyText}`);
}

/** A lock that nobody else takes, to see whether locks work. */
export function newProbeLockKey(): bigint {
  return (probeMagic << 48n) | hash48(randomUUID());
}

function hash48(text: string): bigint {
  return BigInt(`0x${hash('sha256', text).slice(0, 12)}`);
}
