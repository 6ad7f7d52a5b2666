import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { limitLockWaits } from '../registry/inline-versions.ts';
import { distributedWith } from '../statements/placed.ts';
import { savepoint } from '../statements/savepoint.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Schedules a table to be dropped. Running operations may still read it. */
export async function dropLater(db: Queryable, readSchema: string, tableName: string, seconds: number): Promise<void> {
  await run(
    db,
    refoldTables
      .insertInto('refold.old_tables')
      .values({ table_schema: readSchema, table_name: tableName, drop_after: secondsFromNow(seconds) })
      .onConflict((same) => same.doNothing()),
  );
}

/** Drops a table now, or later if somebody reads it, such as `pg_dump`. */
export async function dropSoon(tx: Queryable, table: OldTable): Promise<void> {
  try {
    await savepoint(tx, async () => {
      await limitLockWaits(tx, dropLockTimeout);
      await dropAlone(tx, table);
    });
  } catch (error) {
    if (sqlStateOf(error) !== lockNotAvailable) throw error;
    await dropLater(tx, table.readSchema, table.tableName, 0);
  }
}

/** Cancels the drop, because the table is in use again. */
export async function dropNever(db: Queryable, readSchema: string, tableName: string): Promise<void> {
  await run(
    db,
    refoldTables
      .deleteFrom('refold.old_tables')
      .where('table_schema', '=', readSchema)
      .where('table_name', '=', tableName),
  );
}

// A query may still read an old table, or hold it in a transaction. The next run tries again.
const dropLockTimeout = '100ms';

/** A table that only running operations still read. */
export interface OldTable {
  readonly readSchema: string;
  readonly tableName: string;
}

/** How to drop a table, and what to do if that fails. */
export interface OldTableHandling {
  drop(tx: Queryable, table: OldTable): Promise<void>;
  failed(table: OldTable, error: unknown): Promise<void>;
}

/**
 * Drops the tables that are due, except those in use at the moment. If several processes run it, one of them drops a table. The drop and
 * the deletion of its record are one transaction: a table in use is never dropped, and no table is forgotten.
 */
export async function dropOldTables(
  db: Database,
  { drop, failed }: OldTableHandling = { drop: dropAlone, failed: (_, error) => Promise.reject(error) },
): Promise<string[]> {
  const due = await run(
    db,
    refoldTables
      .selectFrom('refold.old_tables')
      .select(['table_schema as readSchema', 'table_name as tableName'])
      .where('drop_after', '<=', sql<string>`now()`),
  );
  const dropped: string[] = [];
  for (const table of due) {
    try {
      const gone = await db.transaction(async (tx) => {
        if (!(await takeOldTable(tx, table))) return false;
        await drop(tx, table);
        return true;
      });
      if (gone) dropped.push(table.tableName);
    } catch (error) {
      if (sqlStateOf(error) !== lockNotAvailable) await failed(table, error);
    }
  }
  return dropped;
}

/** Drops only the table, without hooks of a declaration. */
export async function dropAlone(tx: Queryable, { readSchema, tableName }: OldTable): Promise<void> {
  await run(tx, sql`drop table if exists ${sql.id(readSchema, tableName)}`);
  if (tx.elsewhere?.placement === 'partition')
    await tx.query({ text: `delete from ${distributedWith} where table_name = $1`, values: [tableName] });
}

/** Postpones a drop that failed. */
export async function postponeDrop(db: Queryable, { readSchema, tableName }: OldTable, seconds: number): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.old_tables')
      .set({ drop_after: secondsFromNow(seconds) })
      .where('table_schema', '=', readSchema)
      .where('table_name', '=', tableName),
  );
}

function secondsFromNow(seconds: number): RawBuilder<string> {
  return sql`now() + make_interval(secs => ${seconds})`;
}

const lockNotAvailable = '55P03';

async function takeOldTable(tx: Queryable, { readSchema, tableName }: OldTable): Promise<boolean> {
  const taken = await run(
    tx,
    sql`
      delete from refold.old_tables
      where (table_schema, table_name) in (
        select table_schema, table_name
        from refold.old_tables
        where table_schema = ${readSchema} and table_name = ${tableName} and drop_after <= now()
        for update skip locked
      )
      returning table_name`,
  );
  if (taken.length === 0) return false;
  await limitLockWaits(tx, dropLockTimeout);
  return true;
}
