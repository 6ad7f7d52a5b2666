import type { Queryable } from './statement.ts';

/** What every process that maintains something looks for again and again, in one statement: most times there is nothing. */
export interface Work {
  /** Rebuilds that are processors of their own: those beside a table that serves. */
  readonly rebuilds: readonly { readonly name: string; readonly version: number; readonly tableName: string }[];
  /** The versions that appends fold into. */
  readonly live: readonly { readonly name: string; readonly version: number }[];
  /** Whether there are tables whose time to be dropped has come. */
  readonly oldTables: boolean;
}

export async function readWork(db: Queryable): Promise<Work> {
  const [work] = await db.query<Work>({
    name: 'read work',
    text: `
      select
        (
          select coalesce(
            json_agg(json_build_object('name', name, 'version', version, 'tableName', table_name) order by name, version),
            '[]'
          )
          from refold.rebuilds
          where form = 'beside'
        ) as rebuilds,
        (
          select coalesce(json_agg(json_build_object('name', name, 'version', version)), '[]')
          from refold.inline_versions
          where status = 'live'
        ) as live,
        exists (select from refold.old_tables where drop_after <= now()) as "oldTables"`,
  });
  return work as Work; // a select without a table has one row
}
