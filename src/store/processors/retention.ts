import type { Queryable } from '../postgres/statement.ts';

/**
 * Deletes old changes of versions without an owner: retired versions, and versions that no process declares. Owners prune the changes of
 * their own versions every minute.
 */
export async function pruneChangesWithoutOwner(db: Queryable, keepMinutes: number): Promise<void> {
  await db.query({
    text: `
      delete from refold.changes
      where at < now() - make_interval(mins => $1)
        and not exists (
          select from refold.processors
          where processors.name = changes.name and processors.version = changes.version and owner is not null
        )`,
    values: [keepMinutes],
  });
}

/** Deletes old intervals of the run log. */
export async function pruneRuns(db: Queryable, keepDays: number): Promise<void> {
  await db.query({
    text: 'delete from refold.runs where started_at < now() - make_interval(days => $1)',
    values: [keepDays],
  });
}

/** Deletes dead letters, skips and discards of retired versions whose tables are dropped. */
export async function pruneRetired(db: Queryable): Promise<void> {
  const isGone = `
    version_of.state = 'retired'
    and not exists (
      select from refold.old_tables where table_schema = version_of.table_schema and old_tables.table_name = version_of.table_name
    )`;
  for (const table of ['dead_letters', 'skips', 'discards']) {
    await db.query({
      text: `
        delete from refold.${table} as forgotten
        using refold.projections as version_of
        where version_of.name = forgotten.name and version_of.version = forgotten.version and ${isGone}`,
    });
  }
}

/** Deletes leases that expired long ago. */
export async function pruneLeases(db: Queryable, keepDays: number): Promise<void> {
  await db.query({
    text: 'delete from refold.leases where expires_at < clock_timestamp() - make_interval(days => $1)',
    values: [keepDays],
  });
}
