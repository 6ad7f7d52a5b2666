import type { Elsewhere, Queryable } from './statement.ts';

/**
 * The statement that puts a new table of a Citus cluster beside Refold's own tables of the store: on the same worker, and moved with them. So a
 * batch is one transaction of that worker, and a snapshot shows rows and checkpoints of one moment. None in plain PostgreSQL.
 *
 * @param table its quoted name with its schema
 */
export function placingTexts(db: Queryable, table: string): string[] {
  if (db.elsewhere?.placement === undefined) return [];
  const literal = `'${table.replaceAll("'", "''")}'`;
  return [`select create_distributed_table(${literal}::regclass, null, colocate_with => '${placedWith}')`];
}

/** The table beside which all others of a store are placed. */
export const placedWith = 'refold.projections';

/** A notification that a statement sends when it commits. */
export interface Notifying {
  readonly channel: string;
  /** An expression over the rows of `from`. */
  readonly payload: string;
  /** A clause with its keyword; empty for one notification. */
  readonly from: string;
}

/**
 * The end of a statement that notifies listeners. In a Citus cluster, it would run on a worker, where nobody listens: there it returns what
 * {@link notifyPlaced} sends from the coordinator.
 */
export function notifyingText(db: Queryable, { channel, payload, from }: Notifying): string {
  const selected =
    db.elsewhere?.placement === undefined ? `pg_notify('${channel}', ${payload})` : `${payload} as payload`;
  return `select ${selected}${from}`;
}

/** Sends what a statement with {@link notifyingText} has returned, if it could not do so itself. */
export async function notifyPlaced(db: Queryable, channel: string, rows: readonly object[]): Promise<void> {
  if (db.elsewhere?.placement === undefined || rows.length === 0) return;
  const payloads = rows.map((row) => ('payload' in row ? row.payload : null));
  await db.query({
    name: 'notify placed',
    text: 'select pg_notify($1, payload) from unnest($2::text[]) as payload',
    values: [channel, payloads],
  });
}

/**
 * Follows the `begin` of a transaction whose statements must see one state. In a Citus cluster, its snapshot is that of the worker, and a
 * statement after the tables have moved would be of another one. So a move waits for the transaction before it ends.
 */
export function holdPlacementText(elsewhere: Elsewhere | undefined): string {
  return elsewhere?.placement === undefined ? '' : '; select refold.hold_placement()';
}
