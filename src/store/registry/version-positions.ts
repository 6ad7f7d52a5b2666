import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { ColumnsOf, Queryable } from '../statements/statement.ts';

export interface VersionPosition extends ColumnsOf<'refold.processors', 'name' | 'version'> {
  /** One checkpoint per partition, in order. The whole version has folded the log up to the lowest one. */
  readonly checkpoints: readonly GlobalPosition[];
  /** The position at which its processor stopped and waits for an operator; null while it runs. */
  readonly stoppedAt: GlobalPosition | null;
}

/** The positions of these versions, in one statement. Versions that are not in the registry are left out. */
export async function readVersionPositions(
  db: Queryable,
  versions: readonly { readonly name: string; readonly version: number }[],
): Promise<VersionPosition[]> {
  const rows = await db.query<Omit<VersionPosition, 'checkpoints'> & { readonly checkpoints: readonly string[] }>({
    name: 'read version positions',
    text: `
      select
        name,
        version,
        json_agg(refold.reached(name, version, checkpoint)::text order by partition) as checkpoints,
        -- a stopped processor without an owner will be claimed and retried
        min(refold.reached(name, version, checkpoint)) filter (where status = 'stopped' and owner is not null) as "stoppedAt"
      from refold.processors
      join unnest($1::text[], $2::integer[]) as wanted (name, version) using (name, version)
      group by name, version`,
    values: [versions.map(({ name }) => name), versions.map(({ version }) => version)],
  });
  return rows.map((row) => ({ ...row, checkpoints: row.checkpoints.map(globalPosition) }));
}

/** The table is the one with its current rows. */
export interface StoredVersion extends ColumnsOf<'refold.projections', 'state' | 'table_name'> {
  readonly checkpoint: GlobalPosition;
  /** The anchor of its lowest checkpoint. */
  readonly anchor: string | null;
  /** Whether an operator has paused it: nobody maintains it. */
  readonly paused: boolean;
  /** Whether its rows lack events: there are dead letters or skipped events. */
  readonly leavesOut: boolean;
}

/** The state, table and position of one version; undefined if the registry does not contain it. */
export async function readVersionStatus(
  db: Queryable,
  name: string,
  version: number,
): Promise<StoredVersion | undefined> {
  const rows = await db.query<StoredVersion>({
    name: 'read version status',
    text: `
      select
        state,
        table_name as "tableName",
        paused_at is not null as paused,
        coalesce(refold.reached($1, $2, lowest.checkpoint), 0) as checkpoint,
        lowest.anchor,
        exists (select from refold.dead_letters where table_name = projections.table_name)
          or exists (select from refold.skips where table_name = projections.table_name) as "leavesOut"
      from refold.projections
      left join lateral (
        select checkpoint, anchor from refold.processors where name = $1 and version = $2 order by checkpoint limit 1
      ) as lowest on true
      where name = $1 and version = $2`,
    values: [name, version],
  });
  return rows[0];
}
