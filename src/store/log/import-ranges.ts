import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/**
 * Whether all appends of a range are in the log. Also checks that the last key still exists: if keys were deleted manually, the records of
 * ranges are not valid.
 */
export async function isImported(db: Queryable, digest: Buffer, lastKey: string): Promise<boolean> {
  const found = await run(
    db,
    refoldTables
      .selectFrom('refold.import_ranges')
      .select('digest')
      .where('digest', '=', digest)
      .where(({ exists, selectFrom }) => exists(selectFrom('refold.append_keys').where('key', '=', lastKey))),
    'find import range',
  );
  return found.length > 0;
}

/** Records that all appends of a range are committed. */
export async function recordImported(db: Queryable, digest: Buffer): Promise<void> {
  await run(
    db,
    refoldTables
      .insertInto('refold.import_ranges')
      .values({ digest })
      .onConflict((same) => same.doNothing()),
    'record import range',
  );
}
