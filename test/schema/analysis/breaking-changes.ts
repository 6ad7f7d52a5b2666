import type { Projection } from '../../../src/index.ts';
import { type VersionChangesOptions, versionChanges } from '../../../src/schema/version-changes.ts';

/** Only the messages of breaking changes. */
export function breakingChanges(older: Projection, newer: Projection, options: VersionChangesOptions): string[] {
  return versionChanges(older, newer, options)
    .filter(({ criticality }) => criticality === 'breaking')
    .map(({ message }) => message);
}
