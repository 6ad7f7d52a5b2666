import { silentSeconds } from '../server/running-processes.ts';
import type { ColumnsOf, Queryable, TableRow } from '../statements/statement.ts';

/** A running process of the application, as it announced itself, such as `host:4711`. A process of an older release has no role. */
export interface LiveProcess extends ColumnsOf<'refold.processes', 'name' | 'role'> {
  /** The projection versions that it declares, such as `cart_summary@2`. */
  readonly versions: readonly string[];
}

/** Whether a process serves clients, maintains read tables, or both. */
export type ProcessRole = NonNullable<TableRow<'refold.processes'>['role']>;

/** `host:9` before `host:10`. */
const byName = `regexp_replace(name, '[0-9]+$', ''), length(name), name`;

/** The processes with a recent heartbeat, by name. A process of an older release that maintains nothing is not included. */
export async function readLiveProcesses(db: Queryable): Promise<LiveProcess[]> {
  return db.query<LiveProcess>({
    text: `
      select
        name,
        role,
        case
          when role is null then array(
            select distinct substring(unit from '^processor (.*)/[0-9]+$') as version
            from unnest(declares) as unit
            where unit like 'processor %'
            order by version
          )
          else versions
        end as versions
      from refold.processes
      where heartbeat_at > clock_timestamp() - make_interval(secs => $1)
      order by ${byName}`,
    values: [silentSeconds],
  });
}

/** The processes with a recent heartbeat that run reactors and declare this version of one above version 1. */
export async function readDeclaringProcesses(db: Queryable, reactor: string, version: number): Promise<string[]> {
  const rows = await db.query<ColumnsOf<'refold.processes', 'name'>>({
    text: `
      select name
      from refold.processes
      where heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        and role is distinct from 'gateway'
        and reactor_versions -> $2::text @> to_jsonb($3::integer)
      order by ${byName}`,
    values: [silentSeconds, reactor, version],
  });
  return rows.map(({ name }) => name);
}

/** The processes with a recent heartbeat that fold this version with other code than that of a fingerprint. */
export async function readProcessesOfOtherCode(db: Queryable, id: string, fingerprint: string): Promise<string[]> {
  const rows = await db.query<ColumnsOf<'refold.processes', 'name'>>({
    text: `
      select name
      from refold.processes
      where heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        and code ->> $2::text <> $3
      order by ${byName}`,
    values: [silentSeconds, id, fingerprint],
  });
  return rows.map(({ name }) => name);
}

/** The processes with a recent heartbeat that maintain some of the same with another kind of ownership. */
export async function readProcessesOfOtherOwnership(
  db: Queryable,
  ownership: string,
  maintains: readonly string[],
): Promise<{ readonly name: string; readonly ownership: string }[]> {
  return db.query({
    text: `
      select name, ownership
      from refold.processes
      where heartbeat_at > clock_timestamp() - make_interval(secs => $1) and ownership <> $2 and maintains && $3
      order by ${byName}`,
    values: [silentSeconds, ownership, maintains],
  });
}

/** A running process, with what it owns. */
export interface RunningProcess
  extends LiveProcess,
    ColumnsOf<'refold.processes', 'owns' | 'started_at' | 'heartbeat_at'> {}

/** The processes with a recent heartbeat, by name, with what each owns. */
export async function readRunningDetails(db: Queryable, limit: number): Promise<RunningProcess[]> {
  return db.query<RunningProcess>({
    text: `
      select name, role, versions, owns, started_at as "startedAt", heartbeat_at as "heartbeatAt"
      from refold.processes
      where heartbeat_at > clock_timestamp() - make_interval(secs => $1)
      order by ${byName}, id
      limit $2`,
    values: [silentSeconds, limit],
  });
}
