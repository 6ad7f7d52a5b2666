import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { VersionState } from '../../projections/declaration/version-map.ts';
import type { Queryable } from '../postgres/statement.ts';

export interface VersionPosition {
  readonly name: string;
  readonly version: number;
  /** Of each partition, in order: up to the least of them the whole version has folded the log. */
  readonly checkpoints: readonly GlobalPosition[];
  /** Where its processor stopped at an event, to go on only when somebody does something about it; null while it works. */
  readonly stoppedAt: GlobalPosition | null;
}

/** Where these versions are; one statement, however many. What is not in the registry is left out. */
export async function readVersionPositions(
  db: Queryable,
  versions: readonly { readonly name: string; readonly version: number }[],
): Promise<VersionPosition[]> {
  const rows = await db.query<{
    name: string;
    version: number;
    checkpoints: string[];
    stoppedAt: GlobalPosition | null;
  }>({
    name: 'read version positions',
    text: `
      select
        name,
        version,
        json_agg(refold.reached(name, version, checkpoint)::text order by partition) as checkpoints,
        -- One without an owner is about to get another, which tries again.
        min(refold.reached(name, version, checkpoint)) filter (where status = 'stopped' and owner is not null) as "stoppedAt"
      from refold.processors
      join unnest($1::text[], $2::integer[]) as wanted (name, version) using (name, version)
      group by name, version`,
    values: [versions.map(({ name }) => name), versions.map(({ version }) => version)],
  });
  return rows.map((row) => ({ ...row, checkpoints: row.checkpoints.map(globalPosition) }));
}

export interface VersionStatus {
  readonly state: VersionState;
  /** Where its rows are now. */
  readonly tableName: string;
  readonly checkpoint: GlobalPosition;
}

/** State, table and position of one version; undefined where the registry does not know it. */
export async function readVersionStatus(
  db: Queryable,
  name: string,
  version: number,
): Promise<VersionStatus | undefined> {
  const rows = await db.query<VersionStatus>({
    name: 'read version status',
    text: `
      select state, table_name as "tableName", coalesce((
        select refold.reached($1, $2, min(checkpoint))
        from refold.processors
        where name = $1 and version = $2
      ), 0) as checkpoint
      from refold.projections
      where name = $1 and version = $2`,
    values: [name, version],
  });
  return rows[0];
}
