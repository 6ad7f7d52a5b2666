import type { GlobalPosition } from '../events/global-position.ts';
import type { VersionState } from '../projections/version-map.ts';
import type { Queryable } from './statement.ts';

export interface VersionPosition {
  readonly name: string;
  readonly version: number;
  /** Up to here the whole version has folded the log. */
  readonly checkpoint: GlobalPosition;
}

/** Where these versions are; one statement, however many. What is not in the registry is left out. */
export function readVersionPositions(
  db: Queryable,
  versions: readonly { readonly name: string; readonly version: number }[],
): Promise<VersionPosition[]> {
  return db.query<VersionPosition>({
    name: 'read version positions',
    text: `
      select name, version, min(checkpoint) as checkpoint
      from refold.processors
      join unnest($1::text[], $2::integer[]) as wanted (name, version) using (name, version)
      group by name, version`,
    values: [versions.map(({ name }) => name), versions.map(({ version }) => version)],
  });
}

/** State and position of one version; undefined where the registry does not know it. */
export async function readVersionStatus(
  db: Queryable,
  name: string,
  version: number,
): Promise<{ readonly state: VersionState; readonly checkpoint: GlobalPosition } | undefined> {
  const rows = await db.query<{ state: VersionState; checkpoint: GlobalPosition }>({
    name: 'read version status',
    text: `
      select state, coalesce((
        select min(checkpoint)
        from refold.processors
        where name = $1 and version = $2
      ), 0) as checkpoint
      from refold.projections
      where name = $1 and version = $2`,
    values: [name, version],
  });
  return rows[0];
}
