import type { Queryable } from '../postgres/statement.ts';
import type { ProcessRole } from './live-processes.ts';

/** What a process maintains, as it has announced itself. Units are named by `unitText`. */
export interface AnnouncedProcess {
  readonly id: string;
  /** What it could maintain. */
  readonly declares: readonly string[];
  /** What it maintains. */
  readonly owns: readonly string[];
  /** What it goes on owning, however much it has: where a unit has stopped, no other process should fail at the same place. */
  readonly keeps: readonly string[];
}

export interface Announcement extends AnnouncedProcess {
  /** Such as `host:4711`. */
  readonly name: string;
  readonly role: ProcessRole;
  /** The projection versions that it declares, as `cart_summary@2`. */
  readonly versions: readonly string[];
}

/** A process tells the others that it lives, and what it owns. */
export async function announceProcess(db: Queryable, own: Announcement): Promise<void> {
  await db.query({ name: 'announce process', text: announcement, values: valuesOf(own) });
}

/** Announces a process, and tells of the others that maintain something and were heard of within so many seconds, by the server's clock. */
export async function exchangeAnnouncements(
  db: Queryable,
  own: Announcement,
  seconds: number,
): Promise<AnnouncedProcess[]> {
  return db.query<AnnouncedProcess>({
    name: 'exchange announcements',
    text: `
      with announced as (${announcement})
      select id::text as id, declares, owns, keeps
      from refold.processes
      where id <> $1 and declares <> '{}' and heartbeat_at > clock_timestamp() - make_interval(secs => $8)
      order by id`,
    values: [...valuesOf(own), seconds],
  });
}

const announcement = `
  insert into refold.processes as process (id, name, declares, owns, keeps, role, versions)
  values ($1, $2, $3, $4, $5, $6, $7)
  on conflict (id) do update
  set
    declares = excluded.declares,
    owns = excluded.owns,
    keeps = excluded.keeps,
    heartbeat_at = clock_timestamp()`;

function valuesOf({ id, name, declares, owns, keeps, role, versions }: Announcement): unknown[] {
  return [id, name, declares, owns, keeps, role, versions];
}

/** A process that owns work by what the registry says, and has not been heard of. */
export interface LostOwner {
  readonly owner: string;
  /** Processors, rebuilds and reactors. */
  readonly units: number;
  /** Since it was heard of; null where that is forgotten. */
  readonly seconds: number | null;
}

/** The owners that were not heard of within so many seconds: they were killed, or hang, and no other process has taken over yet. */
export async function readLostOwners(db: Queryable, seconds: number): Promise<LostOwner[]> {
  return db.query<LostOwner>({
    text: `
      with owned as (
        select owner from refold.processors where status = 'running'
        union all
        select owner from refold.rebuilds where status = 'running'
        union all
        select owner from refold.reactors where status = 'running'
      ), owners as (
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

/** A process takes no more part. */
export async function withdrawProcess(db: Queryable, id: string): Promise<void> {
  await db.query({ text: 'delete from refold.processes where id = $1', values: [id] });
}

/** Forgets processes that have ended without a word. */
export async function forgetProcesses(db: Queryable, seconds: number): Promise<void> {
  await db.query({
    text: 'delete from refold.processes where heartbeat_at < clock_timestamp() - make_interval(secs => $1)',
    values: [seconds],
  });
}
