import { type RawBuilder, sql } from 'kysely';
import { qualified } from '../statements/identifiers.ts';
import { placingTexts } from '../statements/placed.ts';
import type { Queryable } from '../statements/statement.ts';

/**
 * Copies the rows of a table to a new one, as the transaction sees them. Without indexes, because the copy is only read as a whole.
 *
 * @param source the quoted name of the table with its schema; `copy` alike
 */
export async function copyTable(tx: Queryable, source: string, copy: string): Promise<void> {
  if (tx.elsewhere?.placement === undefined) {
    await tx.query({ text: `create table ${copy} as select * from ${source}` });
    return;
  }
  await tx.query({ text: `create table ${copy} (like ${source})` });
  // Without a key, Citus could not move it while rows are written.
  await tx.query({ text: `alter table ${copy} replica identity full` });
  // Before it has rows: Citus would copy them.
  for (const text of placingTexts(tx, copy)) await tx.query({ text });
  await tx.query({ text: `insert into ${copy} select * from ${source}` });
}

/** The size of a table on disk. In a Citus cluster, the coordinator's table is empty: there it is the size of the values. */
export function sizeInBytes({ elsewhere }: Queryable, readSchema: string, tableName: string): RawBuilder<bigint> {
  if (elsewhere?.placement === undefined)
    return sql<bigint>`pg_total_relation_size(${qualified(readSchema, tableName)}::regclass)`;
  return sql<bigint>`(select coalesce(sum(pg_column_size(copied.*)), 0)::bigint from ${sql.id(readSchema, tableName)} as copied)`;
}
