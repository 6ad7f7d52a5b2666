import { sql } from 'kysely';
import type { PayloadVersions } from '../../events/payload-versions.ts';
import type { ReactorVersions } from '../../reactors/versioned-reactor.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { ProcessRole } from './live-processes.ts';

/** A process that maintains units, as it announced itself. Units are named by `unitText`. */
export interface AnnouncedProcess {
  readonly id: string;
  /** The units that it can maintain. */
  readonly declares: readonly string[];
  /** The units that it owns. */
  readonly owns: readonly string[];
  /** The units that it keeps at any load. It keeps a stopped unit, because another process would fail at the same event. */
  readonly keeps: readonly string[];
}

/** What the program of a process knows. */
export interface KnownVersions {
  /** The payload versions that it can read. */
  readonly payloadVersions: PayloadVersions;
  /** The versions of reactors that it declares. */
  readonly reactorVersions: ReactorVersions;
}

/** Another process that maintains units. */
export interface OtherProcess extends AnnouncedProcess, KnownVersions {}

export interface Announcement extends AnnouncedProcess, KnownVersions {
  /** The process name, such as `host:4711`. */
  readonly name: string;
  readonly role: ProcessRole;
  /** The projection versions that it declares, such as `cart_summary@2`. */
  readonly versions: readonly string[];
}

/** Records that the process is alive, and what it owns. */
export async function announceProcess(db: Queryable, own: Announcement): Promise<void> {
  await db.query({ name: 'announce process', text: announcement, values: valuesOf(own) });
}

/** Another process, as the exchange of announcements returns it. */
export interface HeardProcess {
  /** Identifies the process with what it announces: it differs whenever that does. */
  readonly standing: string;
  /** Null if the caller knows it by its `standing`. */
  readonly announced: OtherProcess | null;
}

/**
 * Announces a process, and returns the other processes that maintain units and were alive within this many seconds, by the server's clock. What
 * one of them announces is not sent again while it stays the same: of fifty processes with two hundred units, that would be megabytes a second.
 *
 * @param known the standings that the caller knows
 */
export async function exchangeAnnouncements(
  db: Queryable,
  own: Announcement,
  seconds: number,
  known: readonly string[],
): Promise<HeardProcess[]> {
  return db.query<HeardProcess>({
    name: 'exchange announcements',
    text: `
      with announced as (${announcement}), others as (
        select
          *,
          concat_ws(
            ' ',
            id,
            hash_array_extended(declares, 0),
            hash_array_extended(owns, 0),
            hash_array_extended(keeps, 0),
            jsonb_hash_extended(payload_versions, 0),
            jsonb_hash_extended(reactor_versions, 0)
          ) as standing
        from refold.processes
        where id <> $1 and declares <> '{}' and heartbeat_at > clock_timestamp() - make_interval(secs => $10)
      )
      select
        standing,
        case
          when standing <> all ($11::text[]) then json_build_object(
            'id', id,
            'declares', declares,
            'owns', owns,
            'keeps', keeps,
            'payloadVersions', payload_versions,
            'reactorVersions', reactor_versions
          )
        end as announced
      from others
      order by id`,
    values: [...valuesOf(own), seconds, known],
  });
}

const announcement = `
  insert into refold.processes as process
    (id, name, declares, owns, keeps, role, versions, payload_versions, reactor_versions)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict (id) do update
  set
    declares = excluded.declares,
    owns = excluded.owns,
    keeps = excluded.keeps,
    heartbeat_at = clock_timestamp()`;

function valuesOf({ payloadVersions, reactorVersions, ...own }: Announcement): unknown[] {
  const { id, name, declares, owns, keeps, role, versions } = own;
  const known = [JSON.stringify(payloadVersions), JSON.stringify(reactorVersions)];
  return [id, name, declares, owns, keeps, role, versions, ...known];
}

/** A process that owns units according to the registry but is silent. */
export interface LostOwner {
  readonly owner: string;
  /** The number of processors, rebuilds and reactors. */
  readonly units: number;
  /** Seconds since its last heartbeat; null if there is no record of it. */
  readonly seconds: number | null;
}

/** The owners without a heartbeat for this many seconds: they were killed or hang, and no other process has taken over yet. */
export async function readLostOwners(db: Queryable, seconds: number): Promise<LostOwner[]> {
  return db.query<LostOwner>({
    text: `
      with owned as (
        select owner from refold.processors where status = 'running'
        union all
        select owner from refold.rebuilds where status = 'running'
        union all
        select owner from refold.reactors where status = 'running'
      ), owners as materialized ( -- a Citus cluster keeps processes elsewhere, and joins them with what it has read before
        select owner, count(*)::integer as units
        from owned
        where owner is not null
        group by owner
      )
      select owner, units, extract(epoch from clock_timestamp() - heard.at)::float8 as seconds
      from owners
      cross join lateral (select max(heartbeat_at) as at from refold.processes where processes.name = owner) as heard
      where heard.at is null or heard.at < clock_timestamp() - make_interval(secs => $1)
      order by owner`,
    values: [seconds],
  });
}

/** Removes a process that stops in an orderly way. */
export async function withdrawProcess(db: Queryable, id: string): Promise<void> {
  await run(db, refoldTables.deleteFrom('refold.processes').where('id', '=', id));
}

/** Removes processes that ended without withdrawing. */
export async function forgetProcesses(db: Queryable, seconds: number): Promise<void> {
  await run(
    db,
    refoldTables
      .deleteFrom('refold.processes')
      .where('heartbeat_at', '<', sql<string>`clock_timestamp() - make_interval(secs => ${seconds})`),
  );
}
