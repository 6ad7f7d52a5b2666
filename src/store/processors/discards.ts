import { sql } from 'kysely';
import { discardText } from '../../projections/fold/discarded.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import { storedText } from '../../thrown.ts';
import type { ProcessorUnit } from '../server/processor-unit.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { DeadLetter } from './dead-letters.ts';

export interface Discarding {
  readonly name: string;
  readonly version: number;
  readonly actor: string;
  readonly reason: string;
}

/** Records that these events are discarded for their rows. */
export async function insertDiscards(
  tx: Queryable,
  { name, version, actor, reason }: Discarding,
  letterIds: readonly bigint[],
): Promise<void> {
  await run(
    tx,
    sql`
      with discarded as materialized (
        select position, coalesce(key, 'null') as key, event_type, stream_id
        from refold.dead_letters
        where id = any (${letterIds})
      )
      insert into refold.discards (name, version, position, key, event_type, stream_id, actor, reason)
      select ${name}, ${version}, position, key, event_type, stream_id, ${actor}, ${storedText(reason)}
      from discarded
      on conflict (name, version, position, key) do update
      set recalled_at = null, actor = excluded.actor, reason = excluded.reason, at = excluded.at`,
  );
}

/** Records that a whole event is discarded, for all of its rows. */
export async function insertDiscard(
  tx: Queryable,
  discarding: Discarding,
  { position, type, streamId }: Pick<DeadLetter, 'position' | 'type' | 'streamId'>,
): Promise<void> {
  const { name, version, actor, reason } = discarding;
  await run(
    tx,
    sql`
      insert into refold.discards (name, version, position, key, event_type, stream_id, actor, reason)
      values (${name}, ${version}, ${position}, 'null', ${type}, ${streamId}, ${actor}, ${storedText(reason)})
      on conflict (name, version, position, key) do update
      set recalled_at = null, actor = excluded.actor, reason = excluded.reason, at = excluded.at`,
  );
}

/**
 * The events that a fold leaves out, as {@link discardText} writes them: those discarded when its table began. An event that was recalled since
 * is left to the next rebuild, because the fold may be past it. Whether a table lacks an event then does not depend on who folds it when.
 */
export async function readDiscardsOf(
  db: Queryable,
  { kind, name, version }: Pick<ProcessorUnit, 'kind' | 'name' | 'version'>,
): Promise<ReadonlySet<string>> {
  let discards = refoldTables
    .selectFrom('refold.discards')
    .select(['position', 'key'])
    .where('name', '=', name)
    .where('version', '=', version);
  // What was recalled before the version's own table began is deleted; see forgetRecalled.
  if (kind === 'rebuild')
    discards = discards.where(({ eb, or }) =>
      or([
        eb('recalled_at', 'is', null),
        eb(
          'recalled_at',
          '>=',
          eb
            .selectFrom('refold.rebuilds')
            .select('requested_at')
            .where('name', '=', name)
            .where('version', '=', version),
        ),
      ]),
    );
  const rows = await run(db, discards);
  return new Set(rows.map(({ position, key }) => discardText(position, key)));
}

/** The discarded events that are not recalled, as {@link discardText} writes them. */
export async function readDiscards(db: Queryable, name: string, version: number): Promise<ReadonlySet<string>> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.discards')
      .select(['position', 'key'])
      .where('name', '=', name)
      .where('version', '=', version)
      .where('recalled_at', 'is', null),
  );
  return new Set(rows.map(({ position, key }) => discardText(position, key)));
}

/** Recalls discards, only those of one row if a key is given: the next fold of the log applies these events. Returns how many. */
export async function recallDiscards(tx: Queryable, name: string, version: number, key?: string): Promise<number> {
  let discards = refoldTables
    .updateTable('refold.discards')
    .set({ recalled_at: sql`statement_timestamp()` })
    .where('name', '=', name)
    .where('version', '=', version)
    .where('recalled_at', 'is', null)
    .returning('position');
  if (key !== undefined) discards = discards.where('key', '=', sql<RowKey>`${key}::jsonb`);
  return (await run(tx, discards)).length;
}

/** Deletes recalled discards that the version's table now contains: those recalled before its fold began (`begunAt`, or now). */
export async function forgetRecalled(tx: Queryable, name: string, version: number, begunAt?: string): Promise<void> {
  await run(
    tx,
    refoldTables
      .deleteFrom('refold.discards')
      .where('name', '=', name)
      .where('version', '=', version)
      .where('recalled_at', '<', begunAt ?? sql<string>`statement_timestamp()`),
  );
}

/** Deletes all discards of a version. */
export async function deleteDiscards(tx: Queryable, name: string, version: number): Promise<void> {
  await run(tx, refoldTables.deleteFrom('refold.discards').where('name', '=', name).where('version', '=', version));
}
