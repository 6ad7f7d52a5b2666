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

/** SQL for the processors of versions and of rebuilds beside their tables that have stopped because they can't fold their next event. */
export const stoppedAtEvent = `
  select name, version, error
  from (
    select name, version, status, error from refold.processors
    union all
    select name, version, status, error from refold.rebuilds
  ) as unit
  where status = 'stopped' and error ->> 'code' = 'EVOLVE_FAILED' and error ->> 'position' is not null`;

/** The id of a {@link StoppedAt}. Those of dead letters are higher. */
export const stoppedAtId = 0n;

/**
 * The event that the processor of a version, or that of its rebuild, has stopped at, in the form of a dead letter without a key: it is kept from all
 * of its rows.
 */
export interface StoppedAt extends DeadLetter {
  /** The version, such as `cart_summary@2`. */
  readonly of: string;
}

/**
 * SQL for the first event at which a version or its rebuild has stopped, of each version that the condition chooses, with the columns of
 * {@link StoppedAt}. Only events that can't be folded: an event that no process can read may not be discarded.
 */
export function stoppedAtSql(condition: string): string {
  return `
    select distinct on (projection.name, projection.version)
      projection.name || '@' || projection.version as of,
      ${stoppedAtId}::bigint as id,
      null::jsonb as key,
      (stopped.error ->> 'position')::bigint as position,
      coalesce(stopped.error ->> 'type', '?') as type,
      coalesce(stopped.error ->> 'streamId', '?') as "streamId",
      jsonb_build_object('message', stopped.error ->> 'message') as error,
      1 as attempts,
      (stopped.error ->> 'at')::timestamptz as at
    from (${stoppedAtEvent}) as stopped
    join refold.projections as projection using (name, version)
    where projection.state <> 'retired' and ${condition}
    order by projection.name, projection.version, (stopped.error ->> 'position')::bigint`;
}

/** The events at which versions and rebuilds have stopped, by version. @param of one version, such as `cart_summary@2`. @default all */
export async function readStoppedAt(db: Queryable, of?: string): Promise<StoppedAt[]> {
  return db.query<StoppedAt>({
    text: stoppedAtSql(`($1::text is null or projection.name || '@' || projection.version = $1)`),
    values: [of ?? null],
  });
}

/** Releases the stopped rebuild of the version from its owner. */
export async function retryStoppedRebuild(db: Queryable, name: string, version: number): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.rebuilds')
      .set({ status: 'idle', owner: null, error: null, epoch: sql`epoch + 1` })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('status', '=', 'stopped'),
  );
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
