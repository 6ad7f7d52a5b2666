import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';

/** Returns a version map in which the newest declared version of each projection is active. */
export function newestVersions(projections: readonly Projection[]): VersionMap {
  const newest = [...Map.groupBy(projections, ({ name }) => name).values()].map(
    (versions) => versions.toSorted((a, b) => b.version - a.version)[0] as Projection, // groups are not empty
  );
  return {
    revision: newest.map(({ id }) => id).join(' '),
    served: new Map(newest.map((projection) => [projection.name, { projection, active: true, state: 'active' }])),
  };
}
