import type { CheckedReadStore, Placement } from '../../config/read-store-options.ts';
import { createDatabase, type Database } from '../postgres/database.ts';
import { type MigrateOptions, migrate } from '../server/migrate.ts';
import { refuseServer } from '../server/server-facts.ts';
import { distributedWith, placedWith } from '../statements/placed.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';
import { clusterProblem, readCitusFacts } from './citus-facts.ts';

/**
 * Migrates a read store apart from the log, and places Refold's own tables if it is a Citus cluster. Returns the applied migrations.
 *
 * @throws RefoldError as {@link migrate}, and `DATABASE_UNSUITABLE` if its placement and its database do not fit
 */
export async function migrateStore(
  { url, placement }: Pick<CheckedReadStore, 'url' | 'placement'>,
  options: MigrateOptions = {},
): Promise<readonly string[]> {
  const db = createDatabase({ url, applicationName: 'refold-migrate', maxConnections: 2 });
  try {
    if (placement !== undefined) refuseServer(db.url, clusterProblem(await readCitusFacts(db)));
    const { applied } = await migrate(db, options);
    if (placement !== undefined) await placeStore(db, placement);
    return applied;
  } finally {
    await db.close();
  }
}

/**
 * Puts Refold's own tables of a store on one worker of its Citus cluster, all together, and distributes the checkpoints of partitions if rows are to
 * be distributed. Does nothing if they are there.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE` if it holds events, or versions whose rows are on the coordinator
 */
async function placeStore(db: Database, placement: Placement): Promise<void> {
  await db.transaction(async (tx) => {
    // Several processes may start at once.
    await tx.query({ text: 'lock table refold.migrations in exclusive mode' });
    const tables = await readUnplaced(tx, placement);
    if (tables.length === 0) return;
    if (tables.includes(placedWith)) refuseServer(db.url, await usedProblem(tx));
    for (const statement of forPlacing) await tx.query({ text: statement });
    for (const table of await readKeyless(tx)) await tx.query({ text: `alter table ${table} replica identity full` });
    for (const table of tables.filter((table) => table !== distributedWith)) {
      await tx.query({
        text: 'select create_distributed_table($1::regclass, null, colocate_with => $2)',
        values: [table, table === placedWith ? 'none' : placedWith],
      });
    }
    if (tables.includes(distributedWith)) {
      refuseServer(db.url, await partitionedProblem(tx));
      // It can only follow the others in one transaction if its shards are created one after the other.
      await tx.query({ text: "set local citus.multi_shard_modify_mode = 'sequential'" });
      await tx.query({
        text: `select create_distributed_table('${distributedWith}', 'partition', colocate_with => 'none')`,
      });
    }
    for (const statement of [...functions, holdPlacement(placement)]) await tx.query({ text: statement });
  });
}

/** Refold's own tables that are still on the coordinator and belong to a worker, {@link placedWith} first. */
export async function readUnplaced(db: Queryable, placement: Placement): Promise<string[]> {
  const rows = await db.query<{ table: string }>({
    text: `
      select 'refold.' || relname as table
      from pg_class
      left join pg_dist_partition on logicalrelid = pg_class.oid
      where relnamespace = 'refold'::regnamespace
        and relkind = 'r'
        and logicalrelid is null
        and relname <> all ($1)
      order by relname <> 'projections', pg_class.oid`,
    values: [[...ofCoordinator, ...(placement === 'partition' ? [] : [distributedWith.replace('refold.', '')])]],
  });
  return rows.map(({ table }) => table);
}

/** Tables without a primary key. Citus moves a shard that is written to by logical replication, which must find the rows. */
async function readKeyless(tx: Queryable): Promise<string[]> {
  const rows = await tx.query<{ table: string }>({
    text: `
      select 'refold.' || relname as table
      from pg_class
      where relnamespace = 'refold'::regnamespace
        and relkind = 'r'
        and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)`,
  });
  return rows.map(({ table }) => table);
}

/** The tables that stay on the coordinator. No transaction of a batch concerns them, and no statement joins them with those of versions. */
const ofCoordinator: readonly string[] = [
  // of the log: a store does not use them, and their triggers and sequences are here
  ...['events', 'streams', 'append_keys', 'import_ranges', 'stream_snapshots'],
  // of ownership: as advisory locks, by the coordinator and its clock
  ...['processes', 'leases'],
  ...['migrations', 'migrations_lock'],
];

const forPlacing = [
  'set local citus.shard_replication_factor = 1',
  // The triggers of the changes and of the registry only write to tables on the same worker.
  'set local citus.enable_unsafe_triggers = on',
];

/**
 * What Refold's functions mean in such a store. Citus sends them to the worker with the statement, where they may not read other tables.
 *
 * - A store apart from the log has no inline versions, so a version has reached its checkpoint.
 * - Citus refuses functions in `returning` that are not immutable. The start time of the server does not change during a session; it is that
 *   of the coordinator. Lost writes of a worker need no start time: its checkpoints are lost with its rows.
 */
const functions = [
  `create or replace function refold.reached(of_name text, of_version integer, checkpoint bigint) returns bigint
   language sql immutable as 'select checkpoint'`,
  `create or replace function refold.server_start() returns bigint
   language sql immutable as 'select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint'`,
];

/**
 * Defines a function that holds the tables where they are until the transaction ends, as every write does. As the owner, because only the owner of a
 * table may lock its placement (ShareLock is 5). All tables that are placed together have one such lock.
 */
function holdPlacement(placement: Placement): string {
  const tables = placement === 'partition' ? [placedWith, distributedWith] : [placedWith];
  const list = tables.map((table) => `''${table}''::regclass`).join(', ');
  return `create or replace function refold.hold_placement() returns void
   language sql volatile security definer set search_path = pg_catalog
   as 'select lock_shard_metadata(5, array(select shardid from pg_dist_shard where logicalrelid in (${list})))'`;
}

/** A read table on one worker is not distributed later. */
async function partitionedProblem(tx: Queryable): Promise<string | undefined> {
  const rows = await tx.query<{ id: string }>({
    text: `select name || '@' || version as id from refold.processors where partition > 0 order by name, version limit 1`,
  });
  return (
    rows[0] &&
    `${rows[0].id} has several partitions, whose rows are together on one worker. Make another, empty database of the cluster a read store, and declare their next versions in it.`
  );
}

/** Rows that are on the coordinator are not moved: nobody waits for a store that is being copied. */
async function usedProblem(tx: Queryable): Promise<string | undefined> {
  const used = await tx.query<{ id: string | null; holdsEvents: boolean }>({
    text: `
      select
        (select name || '@' || version from refold.projections order by name, version limit 1) as id,
        exists (select from refold.events) as "holdsEvents"`,
  });
  const { id, holdsEvents } = onlyRow(used);
  if (holdsEvents)
    return 'It holds events, so it is the database of a log. A read store holds none: give it an empty database.';
  if (id === null) return undefined;
  return `it holds ${id}, whose rows are on the coordinator. Make another, empty database of the cluster a read store, and declare their next versions in it.`;
}
