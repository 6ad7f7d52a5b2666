import type { GlobalPosition } from '../../events/global-position.ts';
import type { VersionState } from '../../projections/declaration/version-map.ts';
import type { Queryable } from '../postgres/statement.ts';

/** A place in a server's write-ahead log. */
export interface WalPlace {
  /** Of the cluster: its replicas have the same. */
  readonly system: string;
  /** Of the history: a promotion begins another one, in which the same places hold something else. */
  readonly timeline: number;
  readonly at: bigint;
}

/** Where the primary is: all that it has acknowledged is at or before this. */
export async function readPrimaryPlace(db: Queryable): Promise<WalPlace> {
  const [row] = await db.query<{ system: string; timeline: number; at: string }>({
    name: 'read primary place',
    text: `
      select
        (select system_identifier::text from pg_control_system()) as system,
        -- The name of a segment begins with the timeline, which the control file tells of late.
        ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int as timeline,
        pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text as at`,
  });
  return placeOf(row as { system: string; timeline: number; at: string }); // a select without from gives one row
}

export interface ReplicaState {
  /** What it has replayed; null of a server that is no standby. */
  readonly place: WalPlace | null;
  /** The versions as it knows them. */
  readonly versions: readonly {
    readonly name: string;
    readonly version: number;
    readonly state: VersionState;
    readonly tableName: string;
  }[];
}

/** Where a replica is, in one snapshot or before. */
export async function readReplicaState(db: Queryable): Promise<ReplicaState> {
  const [row] = await db.query<{
    standby: boolean;
    system: string;
    timeline: number;
    at: string | null;
    versions: ReplicaState['versions'] | null;
  }>({
    name: 'read replica state',
    text: `
      select
        pg_is_in_recovery() as standby,
        (select system_identifier::text from pg_control_system()) as system,
        -- The latest that any of them knows: a standby follows another timeline before its control file says so.
        greatest(
          (select timeline_id from pg_control_checkpoint()),
          (select min_recovery_end_timeline from pg_control_recovery()),
          (select received_tli from pg_stat_wal_receiver)
        ) as timeline,
        pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::text as at,
        (
          select json_agg(json_build_object(
            'name', name, 'version', version, 'state', state, 'tableName', table_name
          ))
          from refold.projections
        ) as versions`,
  });
  const place = row?.standby && row.at !== null ? placeOf({ ...row, at: row.at }) : null;
  return { place, versions: row?.versions ?? [] };
}

/**
 * Up to which position a version's rows are sure to be in this table of it, as a snapshot of a replica shows it; null where it has another. Not as
 * on the primary: the sequence that tells where the log ends is ahead there of what is replayed.
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
