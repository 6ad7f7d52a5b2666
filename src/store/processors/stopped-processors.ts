import { sql } from 'kysely';
import { type Queryable, refoldTables, run, runForOne } from '../statements/statement.ts';
import type { DeadLetter } from './dead-letters.ts';

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

/** SQL for whether a stopped processor can't fold its next event. */
export const isAtEvent = `error ->> 'code' = 'EVOLVE_FAILED' and error ->> 'position' is not null`;

/** The id of a {@link StoppedAt}. Those of dead letters are higher. */
export const stoppedAtId = 0n;

/** The event that the processor of a version has stopped at, in the form of a dead letter without a key: it is kept from all of its rows. */
export interface StoppedAt extends DeadLetter {
  /** The version, such as `cart_summary@2`. */
  readonly of: string;
}

/**
 * The events at which processors have stopped, by version and in log order. Only those that can't be folded: an event that no process can read
 * may not be discarded.
 *
 * @param of one version, such as `cart_summary@2`. @default all
 */
export async function readStoppedAt(db: Queryable, of?: string): Promise<StoppedAt[]> {
  return db.query<StoppedAt>({
    text: `
      select distinct on (projection.name, projection.version)
        projection.name || '@' || projection.version as of,
        ${stoppedAtId}::bigint as id,
        null::jsonb as key,
        (error ->> 'position')::bigint as position,
        coalesce(error ->> 'type', '?') as type,
        coalesce(error ->> 'streamId', '?') as "streamId",
        json_build_object('message', error ->> 'message') as error,
        1 as attempts,
        error ->> 'at' as at
      from refold.processors
      join refold.projections as projection using (name, version)
      where status = 'stopped'
        and ${isAtEvent}
        and projection.state <> 'retired'
        and ($1::text is null or projection.name || '@' || projection.version = $1)
      order by projection.name, projection.version, (error ->> 'position')::bigint`,
    values: [of ?? null],
  });
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
