import { notifyPlaced } from './placed.ts';
import type { Queryable } from './statement.ts';

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
 * {@link sendNotifications} sends from the coordinator.
 */
export function notifyingText(db: Queryable, { channel, payload, from }: Notifying): string {
  const selected =
    db.elsewhere?.placement === undefined ? `pg_notify('${channel}', ${payload})` : `${payload} as payload`;
  return `select ${selected}${from}`;
}

/** Sends what a statement with {@link notifyingText} has returned, if it could not do so itself. */
export async function sendNotifications(db: Queryable, channel: string, rows: readonly object[]): Promise<void> {
  if (db.elsewhere?.placement !== undefined && rows.length > 0) await notifyPlaced(db, channel, rows);
}
