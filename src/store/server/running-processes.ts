import { sqlStateOf } from '../postgres/database-errors.ts';
import type { Queryable } from '../statements/statement.ts';

/** A process sends a heartbeat every second or two, on a busy machine less often. After this time without one, it counts as ended. */
export const silentSeconds = 15;

/** The processes with a recent heartbeat, such as `host:4711 (worker)`. Empty if the database has no tables of Refold yet. */
export async function readRunningProcesses(db: Queryable): Promise<string[]> {
  try {
    const rows = await db.query<{ process: string }>({
      text: `
        select name || coalesce(' (' || role || ')', '') as process
        from refold.processes
        where heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        order by name`,
      values: [silentSeconds],
    });
    return rows.map(({ process }) => process);
  } catch (error) {
    if (isSchemaMissing(error)) return [];
    throw error;
  }
}

/** Whether a statement failed because the database has no tables of Refold yet. */
export function isSchemaMissing(error: unknown): boolean {
  return ['42P01', '3F000'].includes(sqlStateOf(error) ?? ''); // no such table, no such schema
}
