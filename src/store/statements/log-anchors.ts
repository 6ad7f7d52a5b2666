import type { GlobalPosition } from '../../events/global-position.ts';
import { onlyRow, type Queryable } from './statement.ts';

/** What the log has now at positions that a reader remembers. */
export interface LogAnchors {
  /** The anchor of the first position; null beyond the end of the log, and at its beginning. */
  readonly anchor: string | null;
  /** The anchor of the second position; null if none was passed. */
  readonly knownAnchor: string | null;
  /** When the log's server was started, in microseconds. */
  readonly serverStart: bigint;
}

/** For stores whose log is in another database: what a statement of one database reads along with its rows. */
export async function readAnchors(
  log: Queryable,
  position: GlobalPosition | null,
  known: GlobalPosition | null,
): Promise<LogAnchors> {
  const rows = await log.query<LogAnchors>({
    name: 'refold_anchors',
    text: `
      select refold.anchor($1) as anchor, refold.anchor($2) as "knownAnchor", refold.server_start() as "serverStart"`,
    values: [position, known],
  });
  return onlyRow(rows);
}

/** The anchors of these positions, in their order. */
export async function readAnchorsOf(
  log: Queryable,
  positions: readonly GlobalPosition[],
): Promise<readonly (string | null)[]> {
  const rows = await log.query<{ anchor: string | null }>({
    name: 'refold_anchors_of',
    text: `
      select refold.anchor(position) as anchor
      from unnest($1::bigint[]) with ordinality as wanted (position, number)
      order by number`,
    values: [positions],
  });
  return rows.map(({ anchor }) => anchor);
}

/**
 * The anchor of a checkpoint in another database, with what shows that the log has lost an event before it (`refold.next_checkpoint_anchor`); null
 * if the log ends before it.
 *
 * @param previous the anchor of `from`, if it is known
 */
export async function readNextAnchor(
  log: Queryable,
  previous: string | null,
  from: GlobalPosition,
  to: GlobalPosition,
): Promise<{ readonly anchor: string | null; readonly serverStart: bigint }> {
  const rows = await log.query<{ anchor: string | null; serverStart: bigint }>({
    name: 'refold_next_anchor',
    text: 'select refold.next_checkpoint_anchor($1, $2, $3) as anchor, refold.server_start() as "serverStart"',
    values: [previous, from, to],
  });
  return onlyRow(rows);
}

/** What the log says of a checkpoint in another database. */
export interface CheckedAnchor {
  /** Why nothing can continue from it; null if it can. */
  readonly lost: 'beyond' | 'other' | null;
  /** When the log's server was started, in microseconds. */
  readonly serverStart: bigint;
  /** The anchor to keep if nothing is lost: the next check does not count the same events until the server is started again. */
  readonly checked: string | null;
}

/** Whether the last event of a checkpoint in another database is gone. It counts no events, so each read may ask; the next claim counts them. */
export async function isLastEventLost(log: Queryable, checkpoint: bigint, anchor: string | null): Promise<boolean> {
  const rows = await log.query<{ lost: boolean }>({
    name: 'refold_last_event_lost',
    text: `
      select refold.lost_history($1, split_part($2, '.', 1) || '.' || split_part($2, '.', 2)) is not null as lost`,
    values: [checkpoint, anchor],
  });
  return onlyRow(rows).lost;
}

export async function readLostHistory(
  log: Queryable,
  checkpoint: bigint,
  anchor: string | null,
): Promise<CheckedAnchor> {
  const rows = await log.query<CheckedAnchor>({
    text: `
      select
        refold.lost_history($1, $2) as lost, refold.server_start() as "serverStart", refold.checked_anchor($2) as checked`,
    values: [checkpoint, anchor],
  });
  return onlyRow(rows);
}
