import type { Queryable } from './statement.ts';

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

/** Drops the tables whose time has come. Of several processes one does it. */
export async function dropOldTables(db: Queryable): Promise<string[]> {
  const due = await db.query<{ readSchema: string; tableName: string }>({
    text: `
      delete from refold.old_tables
      where (table_schema, table_name) in (
        select table_schema, table_name
        from refold.old_tables
        where drop_after <= now()
        for update skip locked
      )
      returning table_schema as "readSchema", table_name as "tableName"`,
  });
  for (const { readSchema, tableName } of due) {
    await db.query({ text: `drop table if exists "${readSchema}"."${tableName}"` });
  }
  return due.map(({ tableName }) => tableName);
}
