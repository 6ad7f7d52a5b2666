import type { Database } from '../postgres/database.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import type { Queryable } from '../postgres/statement.ts';

/** Has a table dropped later: operations that are under way may still read it. */
export async function dropLater(db: Queryable, readSchema: string, tableName: string, seconds: number): Promise<void> {
  await db.query({
    text: `
      insert into refold.old_tables (table_schema, table_name, drop_after)
      values ($1, $2, now() + make_interval(secs => $3))
      on conflict do nothing`,
    values: [readSchema, tableName, seconds],
  });
}

/** The name is in use again. */
export async function dropNever(db: Queryable, readSchema: string, tableName: string): Promise<void> {
  await db.query({
    text: 'delete from refold.old_tables where table_schema = $1 and table_name = $2',
    values: [readSchema, tableName],
  });
}

// A query may still read an old table, or hold it in a transaction; the next look finds it again.
const dropLockTimeout = '100ms';

/** A table that nothing is read from any more, but for what is under way. */
export interface OldTable {
  readonly readSchema: string;
  readonly tableName: string;
}

/** How a table is dropped, and what becomes of one that can't be. */
export interface OldTableHandling {
  drop(tx: Queryable, table: OldTable): Promise<void>;
  failed(table: OldTable, error: unknown): Promise<void>;
}

/**
 * Drops the tables whose time has come, but for those that are in use at the moment. Of several processes one does it.
 * A table and its note go in one transaction: a name that is in use again is never dropped, and no table is forgotten.
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

/** The table, whatever is declared. */
export async function dropAlone(tx: Queryable, { readSchema, tableName }: OldTable): Promise<void> {
  await tx.query({ text: `drop table if exists "${readSchema}"."${tableName}"` });
}

/** Has a table that could not be dropped tried again later. */
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
