import { sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { storedText } from '../../thrown.ts';
import { copyLeftOut, forgetLeftOut } from '../processors/left-out.ts';
import { snapshotLockKey } from '../server/lock-keys.ts';
import { qualified } from '../statements/identifiers.ts';
import { type Queryable, refoldTables, run, runForOne } from '../statements/statement.ts';
import { dropSoon } from './old-tables.ts';
import { copyTable, sizeInBytes } from './table-copy.ts';

/** A copy of a version's read table at one position. */
export interface TableSnapshot {
  readonly id: bigint;
  readonly name: string;
  readonly version: number;
  readonly tableSchema: string;
  readonly tableName: string;
  /** The rows are the fold of the log up to this position. */
  readonly checkpoint: GlobalPosition;
  /** The anchor of the checkpoint; null if it is unknown. */
  readonly anchor: string | null;
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

const columns = [
  'id',
  'name',
  'version',
  'table_schema as tableSchema',
  'table_name as tableName',
  'checkpoint',
  'anchor',
  'row_count as rows',
  'bytes',
  'table_fingerprint as tableFingerprint',
  'code_fingerprint as codeFingerprint',
  'automatic',
  'actor',
  'reason',
  'taken_at as takenAt',
] as const;

/** Counts them up to a number; null: all. */
const deadLetters = (upTo: number | null) =>
  sql<number>`(
    select count(*)::integer
    from (
      select from refold.dead_letters where dead_letters.table_name = table_snapshots.table_name limit ${upTo}
    ) as letter
  )`.as('deadLetters');

const selectSnapshots = (upTo: number | null) =>
  refoldTables.selectFrom('refold.table_snapshots').select(columns).select(deadLetters(upTo));

const tableSnapshots = selectSnapshots(null);

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
  const { id } = await runForOne(
    tx,
    sql<{ id: bigint }>`select nextval(pg_get_serial_sequence('refold.table_snapshots', 'id')) as id`,
  );
  const tableName = `${name}_v${version}_s${id}`;
  const copy = sql.id(readSchema, tableName);
  await copyTable(tx, qualified(readSchema, source), qualified(readSchema, tableName));
  await copyLeftOut(tx, source, tableName);
  // What is read comes first: Citus can't insert what is computed from a table.
  await run(
    tx,
    sql`
      with copied as materialized (
        select
          (select count(*) from ${copy}) as row_count,
          ${sizeInBytes(tx, readSchema, tableName)} as bytes,
          (
            select coalesce(jsonb_agg(jsonb_build_array(position, key)), '[]')
            from refold.discards
            where name = ${name} and version = ${version} and position <= ${snapshot.checkpoint}
          ) as lacks,
          (select case when count(distinct split_part(anchor, '.', 8)) = 1 then min(anchor) end from refold.processors where (name, version, checkpoint) = (${name}, ${version}, ${snapshot.checkpoint})) as anchor
      )
      insert into refold.table_snapshots (
        id, name, version, table_schema, table_name, checkpoint, row_count, bytes, events_folded,
        table_fingerprint, code_fingerprint, automatic, actor, reason, lacks, anchor
      )
      overriding system value
      select
        ${id},
        ${name},
        ${version},
        ${readSchema},
        ${tableName},
        ${snapshot.checkpoint},
        row_count,
        bytes,
        ${snapshot.eventsFolded},
        ${snapshot.tableFingerprint},
        ${snapshot.codeFingerprint},
        ${snapshot.automatic},
        ${snapshot.actor},
        ${storedText(snapshot.reason)},
        lacks,
        anchor
      from copied`,
  );
  return runForOne(tx, tableSnapshots.where('id', '=', id));
}

/** The snapshots of a version, or of all versions; newest first within a version. Dead letters are counted up to `countUpTo`. @default all */
export async function readTableSnapshots(
  db: Queryable,
  name?: string,
  version?: number,
  countUpTo: number | null = null,
): Promise<TableSnapshot[]> {
  let snapshots = selectSnapshots(countUpTo).orderBy('name').orderBy('version').orderBy('id', 'desc');
  if (name !== undefined) snapshots = snapshots.where('name', '=', name);
  if (version !== undefined) snapshots = snapshots.where('version', '=', version);
  return run(db, snapshots);
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
  let snapshots = tableSnapshots.where('name', '=', name).where('version', '=', version);
  if (which !== 'latest' && 'id' in which) snapshots = snapshots.where('id', '=', which.id);
  if (which !== 'latest' && 'upTo' in which)
    snapshots = snapshots.where('checkpoint', '<=', which.upTo).orderBy('checkpoint', 'desc');
  const [locked] = await run(tx, snapshots.orderBy('id', 'desc').limit(1).forShare());
  return locked;
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
  const names = sql.join(Object.values(projection.sqlNames).map((name) => sql.id(name)));
  await run(
    tx,
    sql`
      insert into ${sql.id(readSchema, projection.tableName)} (${names})
      select ${names}
      from ${sql.id(snapshot.tableSchema, snapshot.tableName)}`,
  );
  await copyLeftOut(tx, snapshot.tableName, projection.tableName);
}

/** Drops a snapshot; undefined if there is none. */
export async function deleteTableSnapshot(
  tx: Queryable,
  name: string,
  version: number,
  id: bigint,
): Promise<TableSnapshot | undefined> {
  const [deleted] = await run(tx, deleteSnapshots(name, version).where('id', '=', id));
  if (deleted) await dropCopy(tx, deleted);
  return deleted;
}

/** Drops all snapshots of a version. */
export async function deleteTableSnapshotsOf(tx: Queryable, name: string, version: number): Promise<void> {
  for (const snapshot of await run(tx, deleteSnapshots(name, version))) await dropCopy(tx, snapshot);
}

/** Drops the oldest automatic snapshots of a version, and leaves `keep` of them. */
export async function pruneTableSnapshots(tx: Queryable, name: string, version: number, keep: number): Promise<void> {
  const oldest = deleteSnapshots(name, version).where('id', 'in', ({ selectFrom }) =>
    selectFrom('refold.table_snapshots')
      .select('id')
      .where('name', '=', name)
      .where('version', '=', version)
      .where('automatic', 'is', true)
      .orderBy('id', 'desc')
      .offset(keep),
  );
  for (const snapshot of await run(tx, oldest)) await dropCopy(tx, snapshot);
}

function deleteSnapshots(name: string, version: number) {
  return refoldTables
    .deleteFrom('refold.table_snapshots')
    .where('name', '=', name)
    .where('version', '=', version)
    .returning(columns)
    .returning(deadLetters(null));
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
  const { taken } = await runForOne(
    tx,
    sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${snapshotLockKey(name, version)}) as taken`,
  );
  return taken;
}

async function dropCopy(tx: Queryable, { tableSchema, tableName }: TableSnapshot): Promise<void> {
  await dropSoon(tx, { readSchema: tableSchema, tableName });
  await forgetLeftOut(tx, tableName);
}
