import { hash, randomUUID } from 'node:crypto';
import { type ProcessorUnit, unitText } from './processor-unit.ts';

/**
 * Creates the keys of all advisory locks of Refold, except that of a writer's tag in migration 0002, which has {@link tagMagic}. An advisory
 * lock is a lock on a number, which has no meaning for PostgreSQL. The top 16 bits of each key hold the kind of lock, so kinds never
 * collide. The other 48 bits are a hash of what is locked.
 *
 * `xact` locks end with their transaction, other locks with their session or `pg_advisory_unlock`.
 *
 * The view `refold.advisory_locks` (migration 0002) shows who holds a lock, without waiting for it.
 */

/**
 * The prefix of writers' tags: `tagMagic << 48 | position`. 15 bits, because the bigint key must be positive. Shared, to the end of the
 * transaction that appends. Readers of the log look for the lowest tag (`refold.horizon`).
 */
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

/**
 * The lock of the owner of a unit, held exclusively by its session: the server releases it when the session ends, however that happens. One of
 * 2^48 keys: in practice two units never share one.
 */
export function processorLockKey(unit: ProcessorUnit): bigint {
  return (processorMagic << 48n) | hash48(unitText(unit));
}

/** Exclusive, while a transaction registers declared versions: processes that start together register one after the other. */
export const registryLockKey: bigint = registryMagic << 48n;

/** Exclusive, while a transaction moves the stable view of a projection: two versions may become active at the same time. */
export function viewLockKey(name: string): bigint {
  return (viewMagic << 48n) | hash48(`view ${name}`);
}

/** Exclusive, while a transaction takes a scheduled snapshot of a version's read table. Other processes try it, and skip this snapshot. */
export function snapshotLockKey(name: string, version: number): bigint {
  return (tableSnapshotMagic << 48n) | hash48(`snapshot ${name}@${version}`);
}

/**
 * Shared by the sessions of the processes that use an embedded server, in that server's database `postgres`. A process that gets it exclusively is
 * the last one, and stops the server.
 */
export const embeddedOwnerLockKey: bigint = 0x5249n << 48n;

/**
 * The gate of inline projections. Every appending transaction shares it to its end. A version becomes live in a transaction that holds it
 * exclusively, so no append is halfway through then. The same as `refold.inline_gate()` of migration 0004.
 */
export const inlineGateKey: bigint = 0x524en << 48n;

/**
 * Shared by transactions that fold into a live inline version. `refold.settle_inline` tries it exclusively, which succeeds when no such
 * transaction is running.
 */
export function inlineVersionLockKey(id: string): bigint {
  return (inlineVersionMagic << 48n) | hash48(id);
}

/**
 * Shared by transactions that announce that appends leave an inline version, until they end. Appends look for it in
 * `refold.advisory_locks`, because the
 * announcement itself is invisible before its commit. The same as `refold.inline_leave_key()` of migration 0004.
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

/**
 * One row of an inline version, by its key text. Exclusive, to the end of the append: the next append of the row draws later positions. Two rows
 * may share a key; their appends then wait for each other needlessly.
 */
export function inlineRowLockKey(id: string, keyText: string): bigint {
  return (inlineRowMagic << 48n) | hash48(`${id} ${keyText}`);
}

/** A lock that nothing else uses. At the start, one connection takes it and another looks for it in `pg_locks`. */
export function newProbeLockKey(): bigint {
  return (probeMagic << 48n) | hash48(randomUUID());
}

function hash48(text: string): bigint {
  return BigInt(`0x${hash('sha256', text).slice(0, 12)}`);
}
