import { createHash } from 'node:crypto';

/**
 * Every advisory lock that Refold takes has its key made here (or by the tag trigger of migration 0001, which agrees with
 * {@link tagMagic}). The kind of lock is in the top 16 bits, so that kinds never meet.
 */

/** Marks the keys of appenders' tags: `tagMagic << 48 | position`. 15 bits, so that the bigint key stays positive. */
export const tagMagic = 0x5246;

const processorMagic = 0x5247n;
const registryMagic = 0x5248n;

/** The lock of the live owner of a processor; one of 2^48 keys, so that two processors never share one in practice. */
export function processorLockKey(
  kind: 'processor' | 'rebuild',
  name: string,
  version: number,
  partition: number,
): bigint {
  return (processorMagic << 48n) | hash48(`${kind} ${name}@${version}/${partition}`);
}

/** Held by whoever registers declared versions, so that processes that start together take turns. */
export const registryLockKey: bigint = registryMagic << 48n;

/** Held by the process that owns an embedded server, in that server's database `postgres`. */
export const embeddedOwnerLockKey: bigint = 0x5249n << 48n;

function hash48(text: string): bigint {
  return createHash('sha256').update(text).digest().readBigUInt64BE() >> 16n;
}
