import type { Database } from '../postgres/database.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import type { Queryable } from '../postgres/statement.ts';

/** Schedules a table to be dropped. Running operations may still read it. */
export async function dropLater(db: Queryable, readSchema: string, tableName: string, seconds: number): Promise<void> {
  await db.query({
    text: `
      insert into refold.old_tables (table_schema, table_name, drop_after)
      values ($1, $2, now() + make_interval(secs => $3))
      on conflict do nothing`,
    values: [readSchema, tableName, seconds],
  });
}

/** Cancels the drop, because the table is in use again. */
export async function dropNever(db: Queryable, readSchema: string, tableName: string): Promise<void> {
  await db.query({
    text: 'delete from refold.old_tables where table_schema = $1 and table_name = $2',
    values: [readSchema, tableName],
  });
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
  const due = await db.query<OldTable>({
    text: `
      select table_schema as "readSchema", table_name as "tableName"
      from refold.old_tables
      where drop_after <= now()`,
  });
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
  await tx.query({ text: `drop table if exists "${readSchema}"."${tableName}"` });
}

/** Postpones a drop that failed. */
export async function postponeDrop(db: Queryable, { readSchema, tableName }: OldTable, seconds: number): Promise<void> {
  await db.query({
    text: `
      update refold.old_tables
      set drop_after = now() + make_interval(secs => $3)
      where table_schema = $1 and table_name = $2`,
    values: [readSchema, tableName, seconds],
  });
}

const lockNotAvailable = '55P03';

async function takeOldTable(tx: Queryable, { readSchema, tableName }: OldTable): Promise<boolean> {
  const rows = await tx.query({
    text: `
      delete from refold.old_tables
      where (table_schema, table_name) in (
        select table_schema, table_name
        from refold.old_tables
        where table_schema = $1 and table_name = $2 and drop_after <= now()
        for update skip locked
      )
      returning table_name`,
    values: [readSchema, tableName],
  });
  if (rows.length === 0) return false;
  await tx.query({ text: `set local lock_timeout = '${dropLockTimeout}'` });
  return true;
}
