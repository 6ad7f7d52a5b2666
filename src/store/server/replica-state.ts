import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';

/** A position in a server's write-ahead log. */
export interface WalPlace {
  /** The system identifier of the cluster, which its replicas share. */
  readonly system: string;
  /** The timeline. A promotion starts a new one, in which the same WAL positions hold other data. */
  readonly timeline: number;
  readonly at: bigint;
}

/** The last event that a server reports. */
export interface LastEvent {
  readonly position: GlobalPosition;
  readonly anchor: string | null;
}

export interface PrimaryState {
  /** The primary's current WAL position. Everything that it has acknowledged is at or before it. */
  readonly place: WalPlace;
  /** The anchor of the requested position; null if the log ends before it. */
  readonly anchor: string | null;
}

/** The primary's WAL position, and the anchor of the event that it has at the replica's last position. */
export async function readPrimaryState(db: Queryable, position: GlobalPosition | null): Promise<PrimaryState> {
  const rows = await db.query<{ system: string; timeline: number; at: string; anchor: string | null }>({
    name: 'read primary state',
    text: `
      select
        (select system_identifier::text from pg_control_system()) as system,
        -- A segment's name starts with the timeline. The control file is updated late.
        ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int as timeline,
        pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text as at,
        refold.anchor($1) as anchor`,
    values: [position],
  });
  const only = onlyRow(rows);
  return { place: placeOf(only), anchor: only.anchor };
}

export interface ReplicaState {
  /** The WAL position that it has replayed; null for a server that is not a standby. */
  readonly place: WalPlace | null;
  readonly last: LastEvent;
  /** The versions in its copy of the registry. */
  readonly versions: readonly {
    readonly name: string;
    readonly version: number;
    readonly state: VersionState;
    readonly tableName: string;
  }[];
}

/** The state of a replica, at the time of one snapshot or earlier. */
export async function readReplicaState(db: Queryable): Promise<ReplicaState> {
  const [row] = await db.query<{
    standby: boolean;
    system: string;
    timeline: number;
    at: string | null;
    position: GlobalPosition;
    anchor: string | null;
    versions: ReplicaState['versions'] | null;
  }>({
    name: 'read replica state',
    text: `
      select
        pg_is_in_recovery() as standby,
        (select system_identifier::text from pg_control_system()) as system,
        -- The latest of the three: a standby follows another timeline before its control file shows it.
        greatest(
          (select timeline_id from pg_control_checkpoint()),
          (select min_recovery_end_timeline from pg_control_recovery()),
          (select received_tli from pg_stat_wal_receiver)
        ) as timeline,
        pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::text as at,
        last.position,
        refold.anchor(last.position) as anchor,
        (
          select json_agg(json_build_object(
            'name', name, 'version', version, 'state', state, 'tableName', table_name
          ))
          from refold.projections
        ) as versions
      from (select coalesce(max(position), 0) as position from refold.events) as last`,
  });
  const place = row?.standby && row.at !== null ? placeOf({ ...row, at: row.at }) : null;
  const last = { position: row?.position ?? beginning, anchor: row?.anchor ?? null };
  return { place, last, versions: row?.versions ?? [] };
}

/**
 * The position up to which a version's rows certainly are in this table, as a snapshot or a replica shows it; null if the version has another
 * table. Unlike `refold.reached`, it does not ask the sequence of positions, which is ahead of what a snapshot sees and a replica has replayed.
 */
export async function readReplayedCheckpoint(
  db: Queryable,
  { name, version, tableName }: { readonly name: string; readonly version: number; readonly tableName: string },
): Promise<GlobalPosition | null> {
  const [row] = await db.query<{ checkpoint: GlobalPosition | null }>({
    name: 'read replayed checkpoint',
    text: `
      select min(checkpoint) as checkpoint
      from refold.processors
      join refold.projections using (name, version)
      where name = $1 and version = $2 and table_name = $3`,
    values: [name, version, tableName],
  });
  return row?.checkpoint ?? null;
}

function placeOf({ system, timeline, at }: { system: string; timeline: number; at: string }): WalPlace {
  return { system, timeline, at: BigInt(at) };
}
