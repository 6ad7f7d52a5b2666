/**
 * Every advisory lock that Refold takes has its key made here (or by the tag trigger of migration 0001, which agrees with
 * {@link tagMagic}). The kind of lock is in the top 16 bits, so that kinds never meet.
 */

/** Marks the keys of appenders' tags: `tagMagic << 48 | position`. 15 bits, so that the bigint key stays positive. */
export const tagMagic = 0x5246;
