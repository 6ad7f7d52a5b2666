import { sql } from 'kysely';
import { type Queryable, refoldTables, run, runForOne } from '../statements/statement.ts';

/** The number of a version's partitions that have stopped. */
export async function stoppedPartitions(db: Queryable, name: string, version: number): Promise<number> {
  const { stopped } = await runForOne(
    db,
    refoldTables
      .selectFrom('refold.processors')
      .select(({ fn }) => fn.countAll<bigint>().as('stopped'))
      .where('name', '=', name)
      .where('version', '=', version)
      .where('status', '=', 'stopped'),
  );
  return Number(stopped);
}

/** Releases the stopped processors of the version from their owners. A process with other code can then claim them. */
export async function retryStopped(db: Queryable, name: string, version: number): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.processors')
      .set({ status: 'idle', owner: null, error: null, epoch: sql`epoch + 1`, updated_at: sql`now()` })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('status', '=', 'stopped'),
  );
}
