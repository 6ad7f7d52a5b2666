import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../postgres/statement.ts';
import { copyLeftOut, forgetLeftOut } from '../processors/left-out.ts';
import { snapshotLockKey } from '../server/lock-keys.ts';

/** A copy of a version's read table at one position. */
export interface TableSnapshot {
  readonly id: bigint;
  readonly name: string;
  readonly version: number;
  readonly tableSchema: string;
  readonly tableName: string;
  /** The rows are the fold of the log up to this position. */
  readonly checkpoint: GlobalPosition;
  readonly rows: bigint;
  /** The size on disk in bytes. */
  readonly bytes: bigint;
  /** The number of dead letters of the table, stored with the copy. */
  readonly deadLetters: number;
  readonly tableFingerprint: string;
  /** Fingerprint of the code that last built the version. A bug in that code is in the rows. */
  readonly codeFingerprint: string;
  /** Whether the declared schedule took it. */
  readonly automatic: boolean;
  readonly actor: string;
  readonly reason: string;
  readonly takenAt: string;
}

const columns = `
  id,
  name,
  version,
  table_schema as "tableSchema",
  table_name as "tableName",
  checkpoint,
  row_count as rows,
  bytes,
  (
    select count(*)::integer
    from refold.dead_letters
    where dead_letters.table_name = table_snapshots.table_name
  ) as "deadLetters",
  table_fingerprint as "tableFingerprint",
  code_fingerprint as "codeFingerprint",
  automatic,
  actor,
  reason,
  taken_at as "takenAt"`;

export interface NewTableSnapshot {
  readonly name: string;
  readonly version: number;
  readonly readSchema: string;
  /** The table to copy. */
  readonly source: string;
  readonly checkpoint: GlobalPosition;
  readonly eventsFolded: bigint;
  readonly tableFingerprint: string;
  readonly codeFingerprint: string;
  readonly automatic: boolean;
  readonly actor: string;
  readonly reason: string;
}

/** Copies the table, and the records of the events that it left out, as the transaction sees them. */
export async function insertTableSnapshot(tx: Queryable, snapshot: NewTableSnapshot): Promise<TableSnapshot> {
  const { name, version, readSchema, source } = snapshot;
  const [drawn] = await tx.query<{ id: bigint }>({
    text: `select nextval(pg_get_serial_sequence('refold.table_snapshots', 'id')) as id`,
  });
  const id = drawn?.id ?? 0n;
  const tableName = `${name}_v${version}_s${id}`;
  const table = `"${readSchema}"."${tableName}"`;
  // Without indexes, because it is only read as a whole.
  await tx.query({ text: `create table ${table} as select * from "${readSchema}"."${source}"` });
  await copyLeftOut(tx, source, tableName);
  const rows = await tx.query<TableSnapshot>({
    text: `
      insert into refold.table_snapshots (
        id, name, version, table_schema, table_name, checkpoint, row_count, bytes, events_folded,
        table_fingerprint, code_fingerprint, automatic, actor, reason, lacks
      )
      overriding system value
      select
        $1, $2, $3, $4, $5, $6, (select count(*) from ${table}), pg_total_relation_size($7::regclass), $8, $9, $10, $11, $12, $13,
        (
          select coalesce(jsonb_agg(jsonb_build_array(position, key)), '[]')
          from refold.discards
          where name = $2 and version = $3 and position <= $6
        )
      returning ${columns}`,
    values: [
      id,
      name,
      version,
      readSchema,
      tableName,
      snapshot.checkpoint,
      table,
      snapshot.eventsFolded,
      snapshot.tableFingerprint,
      snapshot.codeFingerprint,
      snapshot.automatic,
      snapshot.actor,
      snapshot.reason,
    ],
  });
  return rows[0] as TableSnapshot; // one row was inserted
}

/** The snapshots of a version, or of all versions; newest first within a version. */
export async function readTableSnapshots(db: Queryable, name?: string, version?: number): Promise<TableSnapshot[]> {
  return db.query<TableSnapshot>({
    text: `
      select ${columns}
      from refold.table_snapshots
      where ($1::text is null or name = $1) and ($2::integer is null or version = $2)
      order by name, version, id desc`,
    values: [name ?? null, version ?? null],
  });
}

/** Selects a snapshot of a version: the one taken last, one by id, or the newest at or below a position. */
export type WhichSnapshot = 'latest' | { readonly id: bigint } | { readonly upTo: GlobalPosition };

/** Reads the snapshot and prevents it from being dropped until the transaction ends. Undefined if there is none. */
export async function lockTableSnapshot(
  tx: Queryable,
  name: string,
  version: number,
  which: WhichSnapshot,
): Promise<TableSnapshot | undefined> {
  const id = which !== 'latest' && 'id' in which ? which.id : null;
  const upTo = which !== 'latest' && 'upTo' in which ? which.upTo : null;
  const rows = await tx.query<TableSnapshot>({
    text: `
      select ${columns}
      from refold.table_snapshots
      where name = $1 and version = $2 and ($3::bigint is null or id = $3) and ($4::bigint is null or checkpoint <= $4)
      order by ${upTo === null ? '' : 'checkpoint desc,'} id desc
      limit 1
      for share`,
    values: [name, version, id, upTo],
  });
  return rows[0];
}

/** Why a snapshot's rows differ from a fold of the log, even after later events are applied. */
export interface Misfit {
  /** The first event that was discarded when the snapshot was taken, but has been recalled since. */
  readonly recalled: GlobalPosition | null;
  /** The first event that has been discarded since and is contained in the snapshot's rows. */
  readonly discarded: GlobalPosition | null;
}

/** Compares the discards at the time of the snapshot with the current ones. */
export async function readMisfit(tx: Queryable, snapshot: TableSnapshot): Promise<Misfit> {
  const [misfit] = await tx.query<Misfit>({
    text: `
      with lacks as (
        select (event ->> 0)::bigint as position, event -> 1 as key
        from refold.table_snapshots
        cross join jsonb_array_elements(lacks) as event
        where id = $1
      ), discarded as (
        select position, key
        from refold.discards
        where name = $2 and version = $3 and position <= $4 and recalled_at is null
      ), waiting as (
        select position, coalesce(key, 'null') as key
        from refold.dead_letters
        where table_name = $5
      )
      select
        (select min(position) from (table lacks except table discarded) as recalled) as recalled,
        (select min(position) from (table discarded except table lacks except table waiting) as folded) as discarded`,
    values: [snapshot.id, snapshot.name, snapshot.version, snapshot.checkpoint, snapshot.tableName],
  });
  return misfit ?? { recalled: null, discarded: null };
}

/** Copies the snapshot's rows, and the records of left-out events, to the empty table of `projection`. */
export async function fillFromSnapshot(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  snapshot: TableSnapshot,
): Promise<void> {
  const names = Object.values(projection.sqlNames)
    .map((name) => `"${name}"`)
    .join(', ');
  await tx.query({
    text: `
      insert into "${readSchema}"."${projection.tableName}" (${names})
      select ${names}
      from "${snapshot.tableSchema}"."${snapshot.tableName}"`,
  });
  await copyLeftOut(tx, snapshot.tableName, projection.tableName);
}

/** Drops a snapshot; undefined if there is none. */
export async function deleteTableSnapshot(
  tx: Queryable,
  name: string,
  version: number,
  id: bigint,
): Promise<TableSnapshot | undefined> {
  const rows = await tx.query<TableSnapshot>({
    text: `delete from refold.table_snapshots where name = $1 and version = $2 and id = $3 returning ${columns}`,
    values: [name, version, id],
  });
  if (rows[0]) await dropCopy(tx, rows[0]);
  return rows[0];
}

/** Drops all snapshots of a version. */
export async function deleteTableSnapshotsOf(tx: Queryable, name: string, version: number): Promise<void> {
  const rows = await tx.query<TableSnapshot>({
    text: `delete from refold.table_snapshots where name = $1 and version = $2 returning ${columns}`,
    values: [name, version],
  });
  for (const snapshot of rows) await dropCopy(tx, snapshot);
}

/** Drops the oldest automatic snapshots of a version, and leaves `keep` of them. */
export async function pruneTableSnapshots(tx: Queryable, name: string, version: number, keep: number): Promise<void> {
  const rows = await tx.query<TableSnapshot>({
    text: `
      delete from refold.table_snapshots
      where id in (
        select id
        from refold.table_snapshots
        where name = $1 and version = $2 and automatic
        order by id desc
        offset $3
      )
      returning ${columns}`,
    values: [name, version, keep],
  });
  for (const snapshot of rows) await dropCopy(tx, snapshot);
}

/**
 * The number of events that the version has folded since its last automatic snapshot, or since its beginning. After a reset it counts from
 * the new beginning.
 */
export async function eventsSinceSnapshot(db: Queryable, name: string, version: number): Promise<bigint> {
  const rows = await db.query<{ events: bigint }>({
    name: 'events since snapshot',
    text: `
      with folded as (
        select coalesce(sum(events_folded), 0)::bigint as events
        from refold.processors
        where name = $1 and version = $2
      ), last as (
        select events_folded as events
        from refold.table_snapshots
        where name = $1 and version = $2 and automatic
        order by id desc
        limit 1
      )
      select case when folded.events >= coalesce(last.events, 0) then folded.events - coalesce(last.events, 0) else folded.events end as events
      from folded
      left join last on true`,
    values: [name, version],
  });
  return rows[0]?.events ?? 0n;
}

/** Acquires the right to take the next scheduled snapshot, until the transaction ends. Returns false if another process has it. */
export async function trySnapshotLock(tx: Queryable, name: string, version: number): Promise<boolean> {
  const rows = await tx.query<{ taken: boolean }>({
    text: 'select pg_try_advisory_xact_lock($1) as taken',
    values: [snapshotLockKey(name, version)],
  });
  return rows[0]?.taken === true;
}

async function dropCopy(tx: Queryable, { tableSchema, tableName }: TableSnapshot): Promise<void> {
  await tx.query({ text: `drop table if exists "${tableSchema}"."${tableName}"` });
  await forgetLeftOut(tx, tableName);
}
