import type { Queryable } from '../postgres/statement.ts';

/** The number of a version's partitions that have stopped. */
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

/** Releases the stopped processors of the version from their owners. A process with other code can then claim them. */
export async function retryStopped(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({
    text: `
      update refold.processors
      set status = 'idle', owner = null, error = null, epoch = epoch + 1, updated_at = now()
      where name = $1 and version = $2 and status = 'stopped'`,
    values: [name, version],
  });
}
