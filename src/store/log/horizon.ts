import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';

/**
 * The position up to which the log is complete: the sequence's last value, or the lowest tag of a running writer if that is lower. Tags are
 * advisory locks, read from `pg_locks` (migration 0002). A *later* statement that reads up to here sees all events that will ever be there. Never
 * read events in the same statement or in an older snapshot.
 */
export async function readHorizon(target: Queryable): Promise<GlobalPosition> {
  const [row] = await target.query<{ horizon: bigint }>({
    name: 'refold_horizon',
    text: 'select refold.horizon() as horizon',
  });
  return globalPosition(row?.horizon ?? 0n);
}

/** The horizon, and the anchors that show whether the log's history has changed. */
export interface LogHead {
  readonly horizon: GlobalPosition;
  /** The anchor of the horizon; null if the transaction keeps one snapshot. */
  readonly anchor: string | null;
  /** The current anchor of the known position. Null if no position was passed, or if the log ends before it. */
  readonly knownAnchor: string | null;
  /** When the server was started, in microseconds. Most history changes follow a server start. */
  readonly serverStart: bigint;
}

export async function readLogHead(target: Queryable, known: GlobalPosition | null): Promise<LogHead> {
  const rows = await target.query<LogHead>({
    name: 'refold_read_head',
    text: `
      select horizon, anchor, known_anchor as "knownAnchor", server_start as "serverStart"
      from refold.read_head($1)`,
    values: [known],
  });
  return onlyRow(rows);
}

/** The anchor of a position, and the server's start time. */
export async function readAnchor(
  target: Queryable,
  position: GlobalPosition,
): Promise<Pick<LogHead, 'anchor' | 'serverStart'>> {
  const rows = await target.query<Pick<LogHead, 'anchor' | 'serverStart'>>({
    name: 'refold_anchor',
    text: 'select refold.anchor($1) as anchor, refold.server_start() as "serverStart"',
    values: [position],
  });
  return onlyRow(rows);
}

/** The highest position that was assigned. Appends up to here may be in progress or rolled back. */
export async function readHead(target: Queryable): Promise<GlobalPosition> {
  const [row] = await target.query<{ head: bigint }>({
    name: 'refold_head',
    text: `select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as head`,
  });
  return globalPosition(row?.head ?? 0n);
}

/** A session that holds back the horizon: it has started an append and its transaction is still open. */
export interface Stall {
  /** The horizon cannot pass this position until the session's transaction ends. */
  readonly tag: GlobalPosition;
  /** Null for a prepared transaction. */
  readonly pid: number | null;
  readonly applicationName: string;
  readonly state: string;
  /** Age of its transaction. */
  readonly seconds: number;
  /** Null if this user may not see it. */
  readonly query: string | null;
  /** The role of the session, or of who prepared the transaction. */
  readonly role: string | null;
  /** Null for a local socket, a prepared transaction, or if this user may not see it. */
  readonly clientAddress: string | null;
}

/** The sessions that hold back the horizon, and for how long. Worst first. */
export async function readStalls(target: Queryable): Promise<Stall[]> {
  const rows = await target.query<Omit<Stall, 'tag'> & { tag: bigint }>({
    text: `
      select tag, pid, application_name as "applicationName", state, seconds, query, role, client_address as "clientAddress"
      from refold.stalls`,
  });
  return rows.map((row) => ({ ...row, tag: globalPosition(row.tag) }));
}
