import type { Projection } from '../../projections/projection/projection.ts';
import type { Elsewhere, Queryable } from './statement.ts';

/**
 * The statement that puts a new table of a Citus cluster beside Refold's own tables of the store: on the same worker, and moved with them. So a
 * batch is one transaction of that worker, and a snapshot shows rows and checkpoints of one moment. None in plain PostgreSQL.
 *
 * @param table its quoted name with its schema
 */
export function placingTexts(db: Queryable, table: string): string[] {
  if (db.elsewhere?.placement === undefined) return [];
  return [`select create_distributed_table(${regclass(table)}, null, colocate_with => '${placedWith}')`];
}

/** The same for a table whose rows are distributed over the workers, by their partition: beside the checkpoints of the partitions. */
export function distributingText(table: string): string {
  return `select create_distributed_table(${regclass(table)}, '${partitionColumn}', colocate_with => '${distributedWith}')`;
}

function regclass(table: string): string {
  return `'${table.replaceAll("'", "''")}'::regclass`;
}

/**
 * Whether a Citus cluster distributes the rows of the version over its workers, by partition. Rows and checkpoint of a partition are then on one
 * worker, and everything else of the version on another.
 */
export function isDistributed(
  { elsewhere }: Pick<Queryable, 'elsewhere'>,
  { partitions }: Pick<Projection, 'partitions'>,
): boolean {
  return elsewhere?.placement === 'partition' && partitions > 1;
}

/** The last column of a distributed read table. No declared column has such a name. */
export const partitionColumn = '_partition';

/** The table beside which distributed read tables are placed. */
export const distributedWith = 'refold.partition_checkpoints';

/** The table beside which all others of a store are placed. */
export const placedWith = 'refold.projections';

/** Notifies listeners from the coordinator of a Citus cluster, once for each row with its `payload`. */
export async function notifyPlaced(db: Queryable, channel: string, rows: readonly object[]): Promise<void> {
  const payloads = rows.map((row) => ('payload' in row ? row.payload : null));
  await db.query({
    name: 'notify placed',
    text: 'select pg_notify($1, payload) from unnest($2::text[]) as payload',
    values: [channel, payloads],
  });
}

/**
 * Follows the `begin` of a transaction. In a cluster that distributes rows, one connection to each worker: then all that a transaction reads of a
 * worker is of one snapshot, and definitions can follow rows. With one placement of each shard, writes need no lock of their shard.
 *
 * If the statements must see one state, a move of the tables waits for the transaction before it ends: its snapshot is that of the worker, and a
 * statement after the move would be of another one. Of several workers, each has its own snapshot. The first is that of the registry: what is read
 * of rows later is never behind its checkpoints.
 */
export function placementText({ placement }: Elsewhere, isolation: 'read committed' | 'repeatable read'): string {
  const isOneState = isolation === 'repeatable read';
  switch (placement) {
    case undefined:
      return '';
    case 'schema':
      return isOneState ? holdPlacement : '';
    case 'partition':
      return `; set local citus.multi_shard_modify_mode = 'sequential'; set local citus.all_modifications_commutative = on${
        isOneState ? `${holdPlacement}; select 1 from ${placedWith} limit 1` : ''
      }`;
  }
}

const holdPlacement = '; select refold.hold_placement()';
