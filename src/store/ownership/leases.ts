import { type RawBuilder, sql } from 'kysely';
import type { ProcessorUnit } from '../server/processor-unit.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Identifies one lease from its grant to its end. A process that takes over gets a new one. */
export type LeaseHolder = string;

/** An attempt to get the lease of a unit. */
export interface LeaseRequest {
  readonly unit: ProcessorUnit;
  readonly holder: LeaseHolder;
  /** Holders of the same unit that this process has abandoned. */
  readonly former: readonly LeaseHolder[];
}

/**
 * Grants each lease that is free, has expired or belongs to a former holder of the request. Returns the holders to which it did. Times are those
 * of the database. The check before the write prevents waiting processes from locking rows repeatedly. The check in the conflict clause
 * decides between processes that found a lease free at the same time. All of them lock the rows in one order.
 */
export async function acquireLeases(
  db: Queryable,
  requests: readonly LeaseRequest[],
  seconds: number,
): Promise<ReadonlySet<LeaseHolder>> {
  const granted = await db.query<{ holder: LeaseHolder }>({
    name: 'acquire leases',
    text: `
      insert into refold.leases as lease (kind, name, version, partition, holder, expires_at)
      select kind, name, version, partition, holder, clock_timestamp() + make_interval(secs => $6)
      from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::uuid[]) as wanted (kind, name, version, partition, holder)
      where not exists (
        select from refold.leases as held
        where (held.kind, held.name, held.version, held.partition) = (wanted.kind, wanted.name, wanted.version, wanted.partition)
          and held.expires_at > clock_timestamp() and held.holder <> all ($7::uuid[])
      )
      order by kind, name collate "C", version, partition
      on conflict (kind, name, version, partition) do update
      set holder = excluded.holder, expires_at = excluded.expires_at
      where lease.expires_at <= clock_timestamp() or lease.holder = any ($7::uuid[])
      returning holder`,
    values: [
      requests.map(({ unit }) => unit.kind),
      requests.map(({ unit }) => unit.name),
      requests.map(({ unit }) => unit.version),
      requests.map(({ unit }) => unit.partition),
      requests.map(({ holder }) => holder),
      seconds,
      requests.flatMap(({ former }) => former),
    ],
  });
  return new Set(granted.map(({ holder }) => holder));
}

/** Renews leases, and returns those that are still held. */
export function renewal(holders: readonly LeaseHolder[], seconds: number): { text: string; values: unknown[] } {
  return {
    text: `
      update refold.leases
      set expires_at = clock_timestamp() + make_interval(secs => $2)
      where holder = any ($1::uuid[])
      returning holder`,
    values: [holders, seconds],
  };
}

/** Renews leases with one statement. Returns those that are still held. */
export async function renewLeases(
  db: Queryable,
  holders: readonly LeaseHolder[],
  seconds: number,
): Promise<ReadonlySet<LeaseHolder>> {
  const renewed = await db.query<{ holder: LeaseHolder }>({ name: 'renew leases', ...renewal(holders, seconds) });
  return new Set(renewed.map(({ holder }) => holder));
}

/** Releases leases immediately. */
export async function releaseLeases(db: Queryable, holders: readonly LeaseHolder[]): Promise<void> {
  await run(db, refoldTables.deleteFrom('refold.leases').where('holder', '=', anyOf(holders)), 'release leases');
}

/** A lease that has not expired. */
export interface HeldLease {
  /** In the form of `unitText`. */
  readonly unit: string;
  /** The process; null if no process has taken the unit over yet. */
  readonly owner: string | null;
  readonly expiresAt: string;
}

/** The leases that have not expired, by unit. None if processes own by advisory locks. */
export async function readLeases(db: Queryable, limit: number): Promise<HeldLease[]> {
  return db.query<HeldLease>({
    // The units are read first: a Citus cluster does not join its own tables with those on a worker.
    text: `
      with units as materialized (
        select 'processor' as kind, name, version, partition, owner from refold.processors
        union all
        select 'rebuild', name, version, 0, owner from refold.rebuilds
        union all
        select 'reactor', name, 0, 0, owner from refold.reactors
      )
      select
        kind || ' ' || name || '@' || version || '/' || partition as unit,
        owner,
        expires_at as "expiresAt"
      from refold.leases
      left join units using (kind, name, version, partition)
      where expires_at > clock_timestamp()
      order by kind, name, version, partition
      limit $1`,
    values: [limit],
  });
}

function anyOf(holders: readonly LeaseHolder[]): RawBuilder<LeaseHolder> {
  return sql`any (${holders}::uuid[])`;
}
