import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import { answering } from '../../store/registry/all-registries.ts';
import { highestActive } from '../../store/registry/definitions.ts';
import { sharedColumns } from '../../store/tables/diff-tables.ts';
import { knownVersion } from '../schema-changes/schema-changes.ts';
import { diffVersions } from './diff.ts';

export interface CompareOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  /** The version to activate. */
  readonly projection: Projection;
}

/** Why the version must not become active, or otherwise what was found equal. */
export type Compared = { readonly problem: string } | { readonly problem: null; readonly said: string };

/**
 * Compares the rows of a version with those of the version that answers at present, over the columns that its declaration names.
 *
 * @throws RefoldError `INVALID_TRANSITION` if the two are never at the same position: try again later.
 */
export async function compareWithPrevious({
  db,
  readSchema,
  projections,
  projection,
}: CompareOptions): Promise<Compared> {
  const { id, name, version, activation, keyColumns } = projection;
  const served = await highestActive(db, name);
  const anywhere = await answering(db, name);
  if (anywhere && anywhere.version < version && anywhere.version !== served?.version)
    return {
      problem: `It can't be compared with ${name}@${anywhere.version}, which is in another read store. 'activation.verify' compares it with the log.`,
    };
  if (!served || served.version >= version) return { problem: null, said: 'no previous version to compare with' };
  const known = await knownVersion(db, projections, name, served.version);
  if (!known) return { problem: null, said: 'no previous version to compare with' };
  const older = storedIn(known, served.tableName);
  if (older.keyColumns.join() !== keyColumns.join())
    return {
      problem: `It can't be compared with ${older.id}: their keys differ (${older.keyColumns}; ${keyColumns}).`,
    };
  const wanted = activation.comparedColumns === 'all' ? sharedColumns(older, projection) : activation.comparedColumns;
  const diff = await diffVersions(db, readSchema, older, projection);
  const differing = (wanted ?? []).flatMap((column) => {
    const rows = diff.columns[column];
    return rows === 0 || rows === undefined ? [] : [`${column} in ${rows}`];
  });
  if (diff.onlyOlder > 0) differing.push(`${diff.onlyOlder} only in ${older.id}`);
  if (diff.onlyNewer > 0) differing.push(`${diff.onlyNewer} only in ${id}`);
  if (differing.length === 0) return { problem: null, said: `${diff.rows} rows are those of ${older.id}` };
  return {
    problem: `Of ${diff.rows} rows compared with ${older.id} at position ${diff.position}, these differ: ${differing.join(', ')}. 'refold diff ${older.id} ${id}' shows them.`,
  };
}
