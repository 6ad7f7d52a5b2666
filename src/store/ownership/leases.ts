import { type RawBuilder, sql } from 'kysely';
import type { ProcessorUnit } from '../server/processor-unit.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Identifies one lease from its grant to its end. A process that takes over gets a new one. */
export type LeaseHolder = string;

/**
 * Grants the lease of a unit to `holder` if it is free, has expired or belongs to one of `former`. Returns whether it did. Times are those
 * of the database. The check before the write prevents waiting processes from locking the row repeatedly. The check in the conflict clause
 * decides between processes that found the lease free at the same time.
 */
export async function acquireLease(
  db: Queryable,
  { kind, name, version, partition }: ProcessorUnit,
  { holder, former, seconds }: { holder: LeaseHolder; former: readonly LeaseHolder[]; seconds: number },
): Promise<boolean> {
  const rows = await db.query({
    name: 'acquire lease',
    text: `
      insert into refold.leases as lease (kind, name, version, partition, holder, expires_at)
      select $1, $2, $3, $4, $6, clock_timestamp() + make_interval(secs => $5)
      where not exists (
        select from refold.leases
        where kind = $1 and name = $2 and version = $3 and partition = $4
          and expires_at > clock_timestamp() and holder <> all ($7::uuid[])
      )
      on conflict (kind, name, version, partition) do update
      set holder = excluded.holder, expires_at = excluded.expires_at
      where lease.expires_at <= clock_timestamp() or lease.holder = any ($7::uuid[])
      returning holder`,
    values: [kind, name, version, partition, seconds, holder, former],
  });
  return rows.length > 0;
}

/** Renews leases with one statement. Returns those that are still held. */
export async function renewLeases(
  db: Queryable,
  holders: readonly LeaseHolder[],
  seconds: number,
): Promise<ReadonlySet<LeaseHolder>> {
  const renewed = await run(
    db,
    refoldTables
      .updateTable('refold.leases')
      .set({ expires_at: sql`clock_timestamp() + make_interval(secs => ${seconds})` })
      .where('holder', '=', anyOf(holders))
      .returning('holder'),
    'renew leases',
  );
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
