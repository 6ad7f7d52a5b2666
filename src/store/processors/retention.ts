import { type RawBuilder, sql } from 'kysely';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/**
 * Deletes old changes of versions without an owner: retired versions, and versions that no process declares. Owners prune the changes of
 * their own versions every minute.
 */
export async function pruneChangesWithoutOwner(db: Queryable, keepMinutes: number): Promise<void> {
  await run(
    db,
    refoldTables
      .deleteFrom('refold.changes as change')
      .where('at', '<', sql<string>`now() - make_interval(mins => ${keepMinutes})`)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('refold.processors as processor')
              .whereRef('processor.name', '=', 'change.name')
              .whereRef('processor.version', '=', 'change.version')
              .where('owner', 'is not', null),
          ),
        ),
      ),
  );
}

/** Deletes old intervals of the run log. */
export async function pruneRuns(db: Queryable, keepDays: number): Promise<void> {
  await run(
    db,
    refoldTables
      .deleteFrom('refold.runs')
      .where('started_at', '<', sql<string>`now() - make_interval(days => ${keepDays})`),
  );
}

/** Deletes dead letters, skips and discards of retired versions whose tables are dropped. */
export async function pruneRetired(db: Queryable): Promise<void> {
  for (const table of ['refold.dead_letters', 'refold.skips', 'refold.discards'] as const) {
    await run(db, refoldTables.deleteFrom(table).where(isOfGoneVersion(sql.table(table))));
  }
}

/** Whether a row with the columns `name` and `version` belongs to a retired version without a table. */
function isOfGoneVersion(table: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`exists (
    select from refold.projections as gone
    where gone.name = ${table}.name
      and gone.version = ${table}.version
      and gone.state = 'retired'
      and not exists (
        select from refold.old_tables
        where old_tables.table_schema = gone.table_schema and old_tables.table_name = gone.table_name
      )
  )`;
}

/** Deletes leases that expired long ago. */
export async function pruneLeases(db: Queryable, keepDays: number): Promise<void> {
  await run(
    db,
    refoldTables
      .deleteFrom('refold.leases')
      .where('expires_at', '<', sql<string>`clock_timestamp() - make_interval(days => ${keepDays})`),
  );
}
