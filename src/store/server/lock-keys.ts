import { hash, randomUUID } from 'node:crypto';
import { type ProcessorUnit, unitText } from './processor-unit.ts';

/**
 * Creates the keys of all advisory locks of Refold (except in the tag trigger of migration 0002, which uses {@link tagMagic}). The top 16
 * bits hold the kind of lock, which prevents collisions between kinds.
 */

/** The prefix of appenders' tags: `tagMagic << 48 | position`. 15 bits, because the bigint key must be positive. */
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

/** The lock of the owner of a unit. One of 2^48 keys: in practice two units never share one. */
export function processorLockKey(unit: ProcessorUnit): bigint {
  return (processorMagic << 48n) | hash48(unitText(unit));
}

/** Held while a process registers declared versions. Serializes processes that start together. */
export const registryLockKey: bigint = registryMagic << 48n;

/** Held while the stable view of a projection is moved. */
export function viewLockKey(name: string): bigint {
  return (viewMagic << 48n) | hash48(`view ${name}`);
}

/** Held while a scheduled snapshot of a version's read table is taken. */
export function snapshotLockKey(name: string, version: number): bigint {
  return (tableSnapshotMagic << 48n) | hash48(`snapshot ${name}@${version}`);
}

/** Held by the processes that use an embedded server, in that server's database `postgres`. */
export const embeddedOwnerLockKey: bigint = 0x5249n << 48n;

/**
 * The gate of inline projections. Every appending transaction shares it, and a version becomes live while holding it exclusively. The same
 * as `refold.inline_gate()` in the migration.
 */
export const inlineGateKey: bigint = 0x524en << 48n;

/** Shared by appends that fold into a live inline version. A process that holds it exclusively knows that no such append is running. */
export function inlineVersionLockKey(id: string): bigint {
  return (inlineVersionMagic << 48n) | hash48(id);
}

/**
 * Shared by transactions that announce that appends leave an inline version, until they end. The same as `refold.inline_leave_key()` in the
 * migration.
 */
export function inlineLeaveLockKey(id: string): bigint {
  return (inlineLeaveMagic << 48n) | hash48(id);
}

/**
 * All rows of an inline version. Shared by appends that lock single rows; exclusive if the rows are too many or unknown before the append.
 */
export function inlineRowsLockKey(id: string): bigint {
  return (inlineRowsMagic << 48n) | hash48(id);
}

/** One row of an inline version, by its key text. Another row may have the same lock key. */
export function inlineRowLockKey(id: string, keyText: string): bigint {
  return (inlineRowMagic << 48n) | hash48(`${id} ${keyText}`);
}

/** A lock key that nothing else uses, to test whether locks work. */
export function newProbeLockKey(): bigint {
  return (probeMagic << 48n) | hash48(randomUUID());
}

function hash48(text: string): bigint {
  return BigInt(`0x${hash('sha256', text).slice(0, 12)}`);
}
