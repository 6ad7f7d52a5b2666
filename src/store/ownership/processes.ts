import { sql } from 'kysely';
import type { PayloadVersions } from '../../events/payload-versions.ts';
import type { ReactorVersions } from '../../reactors/versioned-reactor.ts';
import { type ColumnsOf, onlyRow, type Queryable, refoldTables, run } from '../statements/statement.ts';
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
  /** The versions that it folds, each with the fingerprint of its code. @default none */
  readonly code?: Readonly<Record<string, string>>;
  /** The kind of its ownership; null if it maintains nothing. @default null */
  readonly ownership?: string | null;
  /** The versions and reactors that it maintains, such as `cart_summary@2`. @default none */
  readonly maintains?: readonly string[];
}

/**
 * Announces a process: that it is alive, and what it owns.
 *
 * @returns the hash of the announcement
 */
export async function announceProcess(db: Queryable, own: Announcement): Promise<bigint> {
  const rows = await db.query<AnnouncementHash>({
    name: 'announce process',
    text: `
      insert into refold.processes as process
        (id, name, declares, owns, keeps, role, versions, payload_versions, reactor_versions, code, ownership,
         maintains)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      on conflict (id) do update
      set
        declares = excluded.declares,
        owns = excluded.owns,
        keeps = excluded.keeps,
        heartbeat_at = clock_timestamp()
      returning announcement_hash as "announcementHash"`,
    values: valuesOf(own),
  });
  return onlyRow(rows).announcementHash;
}

type AnnouncementHash = ColumnsOf<'refold.processes', 'announcement_hash'>;

/** Who is alive, as a process hears with each of its heartbeats. */
export interface LiveProcesses {
  /** The hash of its own announcement; null if it is not there. */
  readonly ownHash: bigint | null;
  /** Each of the others with what it announces: the text of one differs whenever that does. */
  readonly others: readonly string[];
}

/**
 * Records that an announced process is alive, and returns the others that were within this many seconds, by the server's clock. Every process calls
 * it twice a second, so it reads no announcement: those of fifty processes with two hundred units would be megabytes a second.
 */
export async function exchangeHeartbeats(db: Queryable, id: string, seconds: number): Promise<LiveProcesses> {
  const rows = await db.query<LiveProcesses>({
    name: 'exchange heartbeats',
    text: `
      with beat as (
        update refold.processes
        set heartbeat_at = clock_timestamp()
        where id = $1
        returning announcement_hash
      )
      select
        (select announcement_hash from beat) as "ownHash",
        array(
          select ${standing}
          from refold.processes
          where id <> $1 and heartbeat_at > clock_timestamp() - make_interval(secs => $2)
          order by id
        ) as others`,
    values: [id, seconds],
  });
  return onlyRow(rows);
}

/** Another process, with the text that {@link exchangeHeartbeats} returns for it. */
export interface HeardProcess extends OtherProcess {
  readonly standing: string;
}

/** What these processes announce now: those that {@link exchangeHeartbeats} returned and the caller does not know yet. */
export async function readAnnouncements(db: Queryable, standings: readonly string[]): Promise<HeardProcess[]> {
  return db.query<HeardProcess>({
    name: 'read announcements',
    text: `
      select
        ${standing} as standing,
        id,
        declares,
        owns,
        keeps,
        payload_versions as "payloadVersions",
        reactor_versions as "reactorVersions"
      from refold.processes
      where id = any ($1::uuid[])`,
    values: [standings.map((text) => text.slice(0, text.indexOf(' ')))],
  });
}

const standing = `id || ' ' || announcement_hash`;

function valuesOf({ payloadVersions, reactorVersions, ...own }: Announcement): unknown[] {
  const { id, name, declares, owns, keeps, role, versions, code = {}, ownership = null, maintains = [] } = own;
  const known = [JSON.stringify(payloadVersions), JSON.stringify(reactorVersions), JSON.stringify(code)];
  return [id, name, declares, owns, keeps, role, versions, ...known, ownership, maintains];
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
