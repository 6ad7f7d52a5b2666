import type { Queryable } from '../postgres/statement.ts';

/**
 * Forgets what the owner of a processor would have pruned, where there is none any more: its version is retired, or no process declares it.
 * Owners prune their own changes each minute.
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

/** Forgets intervals that nobody looks at any more. */
export async function pruneRuns(db: Queryable, keepDays: number): Promise<void> {
  await db.query({
    text: 'delete from refold.runs where started_at < now() - make_interval(days => $1)',
    values: [keepDays],
  });
}

/** Forgets dead letters, skips and discards of versions that were retired and whose tables are dropped. */
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

/** Forgets leases that ended long ago and that nobody has asked for since. */
export async function pruneLeases(db: Queryable, keepDays: number): Promise<void> {
  await db.query({
    text: 'delete from refold.leases where expires_at < clock_timestamp() - make_interval(days => $1)',
    values: [keepDays],
  });
}
