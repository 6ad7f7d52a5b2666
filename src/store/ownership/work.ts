import type { ProcessorUnit } from '../server/processor-unit.ts';
import { type ColumnsOf, onlyRow, type Queryable } from '../statements/statement.ts';

/** `requestedAt` distinguishes it from an earlier, cancelled rebuild whose table had the same name. */
export type RequestedRebuild = ColumnsOf<
  'refold.rebuilds',
  'name' | 'version' | 'table_name' | 'requested_at' | 'dead_letters_accepted'
>;

/** The pending work that every maintaining process polls for with one statement. Usually there is none. */
export interface Work {
  /** Rebuilds that are separate processors: those of the form `beside`. */
  readonly rebuilds: readonly RequestedRebuild[];
  /** The versions that appends fold into. */
  readonly live: readonly ColumnsOf<'refold.inline_versions', 'name' | 'version'>[];
  /** Whether there are tables that are due to be dropped. */
  readonly oldTables: boolean;
  /** The units that have stopped. */
  readonly stopped: readonly ProcessorUnit[];
  /** When the server was started that has the registry: in a Citus cluster, that of a worker. */
  readonly serverStart: string;
}

export async function readWork(db: Queryable): Promise<Work> {
  const work = await db.query<Work>({
    name: 'read work',
    text: `
      select
        (
          select coalesce(
            json_agg(
              json_build_object(
                'name', name,
                'version', version,
                'tableName', table_name,
                'requestedAt', requested_at,
                'deadLettersAccepted', dead_letters_accepted
              ) order by name, version
            ),
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
        exists (select 1 from refold.old_tables where drop_after <= now()) as "oldTables",
        (
          select coalesce(
            json_agg(json_build_object('kind', kind, 'name', name, 'version', version, 'partition', partition)),
            '[]'
          )
          from (
            select 'processor' as kind, name, version, partition from refold.processors where status = 'stopped'
            union all
            select 'rebuild', name, version, 0 from refold.rebuilds where status = 'stopped'
            union all
            select 'reactor', name, 0, 0 from refold.reactors where status = 'stopped'
          ) as unit
        ) as stopped,
        extract(epoch from pg_postmaster_start_time())::text as "serverStart"`,
  });
  return onlyRow(work);
}
