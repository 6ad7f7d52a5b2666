import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { readAnchorsOf } from '../statements/log-anchors.ts';
import type { ColumnsOf, Queryable, TableRow } from '../statements/statement.ts';

/** A version's current table, which a process may not know yet. If the generation differs, rows may have changed without recorded changes. */
type RowsTable = ColumnsOf<'refold.projections', 'table_name' | 'generation'>;

/** What is known about a version's recorded changes, from one snapshot. */
export interface ChangesKept extends RowsTable {
  /** All changes after this position are available. */
  readonly floor: GlobalPosition;
  /**
   * No cursor of these rows is above it: the position that the version has reached. For an inline version it is the highest assigned position, also
   * while appends leave it: of several that announce that, the last one to commit may have been the first to announce it, below a cursor given since.
   */
  readonly reached: GlobalPosition;
}

/** Undefined if the registry does not contain the version. */
export async function readChangesKept(db: Queryable, { name, version }: Projection): Promise<ChangesKept | undefined> {
  const [row] = await db.query<
    RowsTable & { readonly floor: GlobalPosition | null; readonly reached: GlobalPosition | null }
  >({
    name: 'read changes kept',
    text: `
      select
        table_name as "tableName",
        generation,
        (select position from refold.change_floors where name = $1 and version = $2) as floor,
        (
          select
            case
              when exists (select from refold.inline_versions where name = $1 and version = $2)
              then greatest(min(checkpoint), pg_sequence_last_value('refold.events_position_seq'), 0)
              else min(checkpoint)
            end
          from refold.processors
          where name = $1 and version = $2
        ) as reached
      from refold.projections
      where name = $1 and version = $2`,
    values: [name, version],
  });
  return row && { ...row, floor: row.floor ?? beginning, reached: row.reached ?? beginning };
}

/** One batch of changes: the keys that it wrote and deleted, as parsed from JSON. */
export interface ChangeBatch {
  readonly position: GlobalPosition;
  readonly keys: readonly RowKey[];
}

export interface ChangePage {
  /** Ordered by position. */
  readonly batches: readonly ChangeBatch[];
  /** Whether there are changes after the last batch. */
  readonly more: boolean;
}

/**
 * The version's changes after a position, over all partitions: up to `maxBatches` per partition, limited to batches with `maxKeys` keys
 * in total; at least one batch if there is any.
 */
export async function readChangePage(
  db: Queryable,
  { name, version }: Projection,
  after: GlobalPosition,
  { maxBatches, maxKeys }: { readonly maxBatches: number; readonly maxKeys: number },
): Promise<ChangePage> {
  const rows = await db.query<{
    position: TableRow<'refold.changes'>['checkpoint'];
    keys: TableRow<'refold.changes'>['upserted'] | null;
    more: boolean;
  }>({
    name: 'read change page',
    text: `
      -- there are up to 64 partitions, and changes of former ones also exist
      with change as (
        select partition, change.*
        from generate_series(0, 63) as partition
        cross join lateral (
          select checkpoint, upserted || deleted as keys
          from refold.changes
          where name = $1 and version = $2 and changes.partition = partition.partition and checkpoint > $3
          order by checkpoint
          limit $4
        ) as change
      -- if a partition was not read to its end, its changes after the last one are unknown
      ), cut as (
        select min(last) as last
        from (
          select max(checkpoint) as last
          from change
          group by partition
          having count(*) = $4
        ) as full_partition
      ), counted as (
        select
          checkpoint,
          keys,
          coalesce(
            sum(jsonb_array_length(keys)) over (
              order by checkpoint range between unbounded preceding and 1::bigint preceding
            ),
            0
          ) as keys_before,
          coalesce(checkpoint > cut.last, false) as beyond,
          cut.last is not null as is_cut
        from change
        cross join cut
      )
      select
        checkpoint as position,
        case when not beyond and keys_before < $5 then keys end as keys,
        is_cut as more
      from counted
      order by checkpoint`,
    values: [name, version, after, maxBatches, maxKeys],
  });
  const batches = rows.flatMap(({ position, keys }) => (keys === null ? [] : [{ position, keys }]));
  return { batches, more: batches.length < rows.length || rows.some(({ more }) => more) };
}

/** The position of a version's rows in the log, from one snapshot. */
export interface RowsPosition extends RowsTable, ColumnsOf<'refold.projections', 'name' | 'version'> {
  readonly reached: GlobalPosition;
  readonly anchor: string | null;
}

/**
 * The positions of these versions, with one statement. Versions that are not in the registry are left out. `upTo`: a horizon for live
 * inline versions. Events above it may or may not be in the rows.
 */
export async function readRowsPositions(
  db: Queryable,
  versions: readonly { readonly name: string; readonly version: number; readonly upTo: GlobalPosition | null }[],
): Promise<RowsPosition[]> {
  const rows = await db.query<RowsPosition>({
    name: 'read rows positions',
    text: `
      select
        name,
        version,
        table_name as "tableName",
        generation,
        reached,
        refold.anchor(reached) as anchor
      from refold.projections
      join unnest($1::text[], $2::integer[], $3::bigint[]) as wanted (name, version, up_to) using (name, version)
      cross join lateral (
        select least(min(refold.reached(processors.name, processors.version, checkpoint)), up_to) as reached
        from refold.processors
        where (processors.name, processors.version) = (projections.name, projections.version)
      ) as rows_position`,
    values: [
      versions.map(({ name }) => name),
      versions.map(({ version }) => version),
      versions.map(({ upTo }) => upTo),
    ],
  });
  const log = db.elsewhere?.log;
  if (!log || rows.length === 0) return rows;
  const anchors = await readAnchorsOf(
    log,
    rows.map(({ reached }) => reached),
  );
  return rows.map((row, index) => ({ ...row, anchor: anchors[index] ?? null }));
}
