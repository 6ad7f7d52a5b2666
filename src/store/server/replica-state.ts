import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isOutage } from '../postgres/database-errors.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';

/** A position in a server's write-ahead log. */
export interface WalPlace {
  /** The system identifier of the cluster, which its replicas share. */
  readonly system: string;
  /** The OID of the database, which is the same in each replica. */
  readonly database: string;
  /** The timeline. A promotion starts a new one, in which the same WAL positions hold other data. */
  readonly timeline: number;
  readonly at: bigint;
}

/** A position of the log up to which a server has events, or rows of events. */
export interface LogPlace {
  readonly position: GlobalPosition;
  /** The position with its anchor, such as `1042.9f3c21ab`. */
  readonly anchor: string;
}

export interface PrimaryState {
  /** The primary's current WAL position. Everything that it has acknowledged is at or before it. */
  readonly place: WalPlace;
  /** Whether the log does not have the events of one of the given places. Null if the log is another database, which does not respond. */
  readonly lost: boolean | null;
}

/** The primary's WAL position, and whether the log has the events that the replica reported. */
export async function readPrimaryState(db: Queryable, known: readonly LogPlace[]): Promise<PrimaryState> {
  const log = db.elsewhere?.log;
  const [rows, lostInLog] = await Promise.all([
    db.query<WalPlaceRow & { readonly lost: boolean }>({
      name: 'read primary state',
      text: `
      select
        ${identity},
        -- A segment's name starts with the timeline. The control file is updated late.
        ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int as timeline,
        pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text as at,
        ${isLost} as lost`,
      values: placeValues(log ? [] : known),
    }),
    log && known.length > 0 ? readLost(log, known) : false,
  ]);
  const { lost, ...place } = onlyRow(rows);
  return { place: placeOf(place), lost: log ? lostInLog : lost };
}

/** Events are lost by a log that is away and comes back, so an outage is no reason to doubt what it had. */
async function readLost(log: Queryable, known: readonly LogPlace[]): Promise<boolean | null> {
  const statement = { name: 'read lost places', text: `select ${isLost} as lost`, values: placeValues(known) };
  try {
    return onlyRow(await log.query<{ lost: boolean }>(statement)).lost;
  } catch (error) {
    if (!isOutage(error)) throw error;
    return null;
  }
}

const identity = `
        (select system_identifier::text from pg_control_system()) as system,
        (select oid::text from pg_database where datname = current_database()) as database`;

const isLost = `
        exists (
          select
          from unnest($1::bigint[], $2::text[]) as known (position, anchor)
          where refold.lost_history(position, anchor) is not null
        )`;

function placeValues(known: readonly LogPlace[]): readonly unknown[] {
  return [known.map(({ position }) => position), known.map(({ anchor }) => anchor)];
}

export interface ReplicaState {
  /** The WAL position that it has replayed; null for a server that is not a standby. */
  readonly place: WalPlace | null;
  /**
   * What must be in the log: the last event, or in a store apart from the log the checkpoints of the versions that may answer. Empty if there are
   * no events.
   */
  readonly known: readonly LogPlace[];
  /** The versions in its copy of the registry that may answer, each with its table: a line such as `cart_summary@2 cart_summary_v2`. */
  readonly tables: string;
}

/** The state of a replica, at the time of one snapshot or earlier. */
export async function readReplicaState(db: Queryable): Promise<ReplicaState> {
  const [row] = await db.query<
    Omit<WalPlaceRow, 'at'> & {
      readonly standby: boolean;
      readonly at: string | null;
      readonly known: readonly { readonly position: string; readonly anchor: string }[] | null;
      readonly tables: string | null;
    }
  >({
    name: 'read replica state',
    text: `
      select
        pg_is_in_recovery() as standby,
        ${identity},
        -- The latest of the three: a standby follows another timeline before its control file shows it.
        greatest(
          (select timeline_id from pg_control_checkpoint()),
          (select min_recovery_end_timeline from pg_control_recovery()),
          (select received_tli from pg_stat_wal_receiver)
        ) as timeline,
        pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::text as at,
        (
          select json_agg(json_build_object('position', position::text, 'anchor', anchor))
          from (${db.elsewhere?.log ? checkpoints : lastEvent}) as known
          where position > 0 and anchor is not null
        ) as known,
        -- As text, which costs half of JSON: every process asks several times a second.
        (
          select string_agg(name || '@' || version || ' ' || table_name, e'\\n')
          from refold.projections
          where state in ('ready', 'active')
        ) as tables`,
  });
  if (!row) return { place: null, known: [], tables: '' };
  const { standby, at, known, tables, ...place } = row;
  return {
    place: standby && at !== null ? placeOf({ ...place, at }) : null,
    known: (known ?? []).map(({ position, anchor }) => ({ position: globalPosition(position), anchor })),
    tables: tables ?? '',
  };
}

const lastEvent = `
            select position, refold.checkpoint_anchor(position) as anchor
            from (select max(position) as position from refold.events) as last`;

// A retired version is not maintained, so its checkpoint may be of a history that is gone. Of versions at one position, with one last event, the
// anchor that counts most events stands for all (migration 0017 describes its parts).
const checkpoints = `
            select distinct on (checkpoint, split_part(anchor, '.', 2), split_part(anchor, '.', 8))
              checkpoint as position,
              anchor
            from refold.processors
            join refold.projections using (name, version)
            where state in ('ready', 'active') and anchor is not null
            order by
              checkpoint,
              split_part(anchor, '.', 2),
              split_part(anchor, '.', 8),
              nullif(split_part(anchor, '.', 3), '')::bigint`;

/**
 * The position up to which a version's rows certainly are in this table, as a snapshot or a replica shows it; null if the version has another
 * table. `leavesOut`: rows may lack events. Unlike `refold.reached`, it does not ask the sequence of positions, which is ahead of what a snapshot sees and a replica has replayed.
 */
export async function readReplayedCheckpoint(
  db: Queryable,
  { name, version, tableName }: { readonly name: string; readonly version: number; readonly tableName: string },
): Promise<{ readonly checkpoint: GlobalPosition; readonly leavesOut: boolean } | null> {
  const [row] = await db.query<{ checkpoint: GlobalPosition | null; leavesOut: boolean }>({
    name: 'read replayed checkpoint',
    text: `
      select
        min(checkpoint) as checkpoint,
        exists (select from refold.dead_letters where table_name = $3)
          or exists (select from refold.skips where table_name = $3) as "leavesOut"
      from refold.processors
      join refold.projections using (name, version)
      where name = $1 and version = $2 and table_name = $3`,
    values: [name, version, tableName],
  });
  return row && row.checkpoint !== null ? { ...row, checkpoint: row.checkpoint } : null;
}

type WalPlaceRow = Omit<WalPlace, 'at'> & { readonly at: string };

function placeOf({ system, database, timeline, at }: WalPlaceRow): WalPlace {
  return { system, database, timeline, at: BigInt(at) };
}
