import type { Queryable } from '../postgres/statement.ts';

/**
 * Whether all appends of a range are in the log. Also checks that the last key still exists: if keys were deleted manually, the records of
 * ranges are not valid.
 */
export async function isImported(db: Queryable, digest: Buffer, lastKey: string): Promise<boolean> {
  const found = await db.query({
    name: 'find import range',
    text: `
      select 1
      from refold.import_ranges
      where digest = $1
        and exists (select from refold.append_keys where key = $2)`,
    values: [digest, lastKey],
  });
  return found.length > 0;
}

/** Records that all appends of a range are committed. */
export async function recordImported(db: Queryable, digest: Buffer): Promise<void> {
  await db.query({
    name: 'record import range',
    text: 'insert into refold.import_ranges (digest) values ($1) on conflict do nothing',
    values: [digest],
  });
}
