import type { Queryable } from '../postgres/statement.ts';

/** How many of a version's partitions can't go on. */
export async function stoppedPartitions(db: Queryable, name: string, version: number): Promise<number> {
  const [row] = await db.query<{ stopped: number }>({
    text: `
      select count(*)::integer as stopped
      from refold.processors
      where name = $1 and version = $2 and status = 'stopped'`,
    values: [name, version],
  });
  return row?.stopped ?? 0;
}

/** Whoever keeps processors of the version that have stopped lets go of them, so that a process with other code can take them. */
export async function retryStopped(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({
    text: `
      update refold.processors
      set status = 'idle', owner = null, error = null, epoch = epoch + 1, updated_at = now()
      where name = $1 and version = $2 and status = 'stopped'`,
    values: [name, version],
  });
}
