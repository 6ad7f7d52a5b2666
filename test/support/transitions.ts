import type { VersionState } from '../../src/projections/projection/version-map.ts';
import { type Queryable, refoldTables, run } from '../../src/store/statements/statement.ts';

/** One transition of a version in the audit log. */
export interface Transition {
  readonly name: string;
  readonly version: number;
  readonly from: VersionState | null;
  readonly to: VersionState;
  readonly actor: string;
  readonly reason: string;
  readonly at: string;
}

/** The last transitions, oldest first: of all projections, of one, or of one version. */
export async function readTransitions(
  db: Queryable,
  { name, version, limit }: { name?: string | null; version?: number | null; limit: number },
): Promise<Transition[]> {
  let last = refoldTables
    .selectFrom('refold.transitions')
    .select(['name', 'version', 'from_state as from', 'to_state as to', 'actor', 'reason', 'at'])
    .orderBy('id', 'desc')
    .limit(limit);
  if (name != null) last = last.where('name', '=', name);
  if (version != null) last = last.where('version', '=', version);
  return (await run(db, last)).reverse();
}
