import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../postgres/statement.ts';

/**
 * The position up to which the log is complete: whatever is read in a *later* statement up to here is all that will ever
 * be there. Never read events in the same statement, nor in an older snapshot.
 */
export async function readHorizon(target: Queryable): Promise<GlobalPosition> {
  const [row] = await target.query<{ horizon: bigint }>({
    name: 'refold_horizon',
    text: 'select refold.horizon() as horizon',
  });
  return globalPosition(row?.horizon ?? 0n);
}

/** How far the log is complete, and what tells whether its history is still the one that is known. */
export interface LogHead {
  readonly horizon: GlobalPosition;
  /** Of the horizon; null where the transaction keeps one snapshot. */
  readonly anchor: string | null;
  /** What the position that was known from before is anchored to now; null where there is none, or the log ends before it. */
  readonly knownAnchor: string | null;
  /** When the server was started, in microseconds: most cuts of history begin with a start. */
  readonly serverStart: bigint;
}

export async function readLogHead(target: Queryable, known: GlobalPosition | null): Promise<LogHead> {
  const [row] = await target.query<LogHead>({
    name: 'refold_read_head',
    text: `
      select horizon, anchor, known_anchor as "knownAnchor", server_start as "serverStart"
      from refold.read_head($1)`,
    values: [known],
  });
  return row as LogHead; // a function that returns one row
}

/** The anchor of a position, and when the server was started. */
export async function readAnchor(
  target: Queryable,
  position: GlobalPosition,
): Promise<Pick<LogHead, 'anchor' | 'serverStart'>> {
  const [row] = await target.query<Pick<LogHead, 'anchor' | 'serverStart'>>({
    name: 'refold_anchor',
    text: 'select refold.anchor($1) as anchor, refold.server_start() as "serverStart"',
    values: [position],
  });
  return row as Pick<LogHead, 'anchor' | 'serverStart'>; // a select without from gives one row
}

/** The last position that was drawn; appends up to here may be under way or rolled back. */
export async function readHead(target: Queryable): Promise<GlobalPosition> {
  const [row] = await target.query<{ head: bigint }>({
    name: 'refold_head',
    text: `select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as head`,
  });
  return globalPosition(row?.head ?? 0n);
}

/** A session that holds the horizon back: it has begun to append and not ended. */
export interface Stall {
  /** The horizon can't pass this position before the session ends its transaction. */
  readonly tag: GlobalPosition;
  /** Null for a prepared transaction. */
  readonly pid: number | null;
  readonly applicationName: string;
  readonly state: string;
  /** Age of its transaction. */
  readonly seconds: number;
  /** Null where this user may not see it. */
  readonly query: string | null;
}

/** Who holds the horizon back, and for how long: the worst first. */
export async function readStalls(target: Queryable): Promise<Stall[]> {
  const rows = await target.query<Omit<Stall, 'tag'> & { tag: bigint }>({
    text: `
      select tag, pid, application_name as "applicationName", state, seconds, query
      from refold.stalls`,
  });
  return rows.map((row) => ({ ...row, tag: globalPosition(row.tag) }));
}
