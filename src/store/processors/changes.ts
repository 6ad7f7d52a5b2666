import { sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import { isTracing, recordedTraceparent } from '../../tracing.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { ProcessorClaim } from './checkpoints.ts';

/**
 * Records which keys a batch changed. Subscriptions follow these records and resume from them. After its number of partitions changes, a
 * version may reach the same position again with other keys.
 */
export async function insertChanges(
  db: Queryable,
  claim: ProcessorClaim,
  checkpoint: GlobalPosition,
  upserted: string,
  deleted: string,
): Promise<void> {
  await db.query({
    name: 'insert changes',
    text: insertChangesText('values ($1, $2, $3, $4, $5, $6, $7)'),
    values: [
      claim.name,
      claim.version,
      claim.partition,
      checkpoint,
      upserted,
      deleted,
      isTracing ? recordedTraceparent() : null,
    ],
  });
}

/** The last value is the `traceparent`. The position may already exist: from another number of partitions, or from a lost history. */
export function insertChangesText(changes: string): string {
  return `
      insert into refold.changes as before (name, version, partition, checkpoint, upserted, deleted, traceparent)
      ${changes}
      on conflict (name, version, partition, checkpoint) do update
      set upserted = before.upserted || excluded.upserted, deleted = before.deleted || excluded.deleted,
        traceparent = excluded.traceparent, at = excluded.at`;
}

/** The same as a CTE of `advanceCheckpoint`, with the keys and the `traceparent` in parameters. Only for rows that were upserted. */
export function changesAlong(upserted: `$${number}`, traceparent: `$${number}`): string {
  const changes = `select $1, $2, $3, $6, ${upserted}::jsonb, '[]'::jsonb, ${traceparent}::text from moved`;
  return `, kept as (${insertChangesText(changes)})`;
}

/** Deletes changes that no subscription can need any more. */
export async function pruneChanges(
  db: Queryable,
  claim: Pick<ProcessorClaim, 'name' | 'version'>,
  keepMinutes: number,
): Promise<void> {
  await run(
    db,
    refoldTables
      .deleteFrom('refold.changes')
      .where('name', '=', claim.name)
      .where('version', '=', claim.version)
      .where('at', '<', sql<string>`now() - make_interval(mins => ${keepMinutes})`),
  );
}
