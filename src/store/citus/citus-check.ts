import type { Placement } from '../../config/read-store-options.ts';
import type { Database } from '../postgres/database.ts';
import { refuseServer } from '../server/server-facts.ts';
import { distributedWith } from '../statements/placed.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';
import { clusterProblem, readCitusFacts } from './citus-facts.ts';
import { readUnplaced } from './place-store.ts';

/**
 * Refuses a read store whose declared placement and database do not fit: a Citus cluster without a placement, a placement without a cluster, or
 * a cluster that can't keep Refold's guarantees.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE`
 */
export async function checkCitus(db: Database): Promise<void> {
  const facts = await readCitusFacts(db);
  const placement = db.elsewhere?.placement;
  if (placement === undefined) {
    // The extension alone does nothing.
    if (facts.workers > 0 && facts.isCoordinator)
      refuseServer(
        db.url,
        `it is the coordinator of a Citus cluster (${facts.version}), and the read store has no placement. Set its placement to 'schema', so that its tables are on a worker.`,
      );
    return;
  }
  refuseServer(db.url, clusterProblem(facts) ?? (await placementProblem(db, placement)));
}

async function placementProblem(db: Queryable, placement: Placement): Promise<string | undefined> {
  const unplaced = await readUnplaced(db, placement);
  if (unplaced.length > 0) return `${unplaced.length} tables of the store are not on a worker. Run \`refold migrate\`.`;
  const { copies, groups, distributes } = await readPlacements(db);
  if (distributes && placement === 'schema')
    return "it was set up with the placement 'partition', and may have rows on several workers. Set that placement again.";
  if (copies !== 1n)
    return `its shards have ${copies} placements; Refold needs one. Set citus.shard_replication_factor to 1, and replicate the worker with PostgreSQL's streaming replication.`;
  if (groups !== 1n)
    return 'tables of the store are not colocated, so they may be on several workers. Nothing but Refold may place them: give the store another, empty database.';
  return undefined;
}

interface Placements {
  readonly copies: bigint;
  readonly groups: bigint;
  /** Whether the checkpoints of partitions are distributed over the workers. */
  readonly distributes: boolean;
}

/** How many placements each shard of the store has, at most, and over how many groups its tables are spread. */
async function readPlacements(db: Queryable): Promise<Placements> {
  const rows = await db.query<Placements>({
    text: `
      with tables as (
        select logicalrelid, colocationid
        from pg_dist_partition
        join pg_class on pg_class.oid = logicalrelid
        where relnamespace = 'refold'::regnamespace
      ), together as (
        select * from tables where logicalrelid <> '${distributedWith}'::regclass
      ), shards as (
        select count(*) as copies
        from tables
        join pg_dist_shard using (logicalrelid)
        join pg_dist_placement using (shardid)
        group by shardid
      )
      select
        (select max(copies) from shards) as copies,
        (select count(distinct colocationid) from together) as groups,
        (select count(*) from tables) > (select count(*) from together) as distributes`,
  });
  return onlyRow(rows);
}
