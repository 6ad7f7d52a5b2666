import type { Queryable } from '../postgres/statement.ts';

/** A process of the application that lives, as it has announced itself. */
export interface LiveProcess {
  /** Such as `host:4711`. */
  readonly name: string;
  /** Null of one of an older release. */
  readonly role: ProcessRole | null;
  /** The projection versions that it declares, as `cart_summary@2`. */
  readonly versions: readonly string[];
}

/** Whether a process answers clients, maintains read tables, or does both. */
export type ProcessRole = 'gateway' | 'worker' | 'all';

// A process tells that it lives every second or two; on a busy machine, not always.
const silentSeconds = 15;

/** The processes that were heard of lately. One of an older release that maintains nothing has not announced itself. */
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
      order by name`,
    values: [silentSeconds],
  });
}
