import type { GlobalPosition } from '../events/global-position.ts';
import type { VersionState } from '../projections/version-map.ts';
import { countDeadLetters } from '../store/dead-letters.ts';
import type { EventLog } from '../store/event-log.ts';
import { type Rebuild, readRebuilds } from '../store/rebuilds.ts';
import { readRegistry } from '../store/registry.ts';
import type { Queryable } from '../store/statement.ts';

/** How one projection version fares. */
export interface VersionStatus {
  readonly name: string;
  readonly version: number;
  readonly state: VersionState;
  /** What its processor does: `running` and `idle` with and without an owner, `stopped` after an error. */
  readonly processor: 'idle' | 'running' | 'stopped';
  readonly owner: string | null;
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** Positions of the log between the two; holes of rolled back appends count. */
  readonly lag: bigint;
  readonly heldReason: string | null;
  readonly error: { readonly message: string; readonly at: string } | null;
  /** Events kept because they could not be folded, and those behind them. */
  readonly deadLetters: number;
  /** How far a new table is that is being built for it; null where none is. */
  readonly rebuild: Pick<Rebuild, 'checkpoint' | 'owner' | 'status' | 'error' | 'requestedBy' | 'reason'> | null;
}

/** All versions of the registry, in the order of their names and versions. */
export async function readStatus(db: Queryable, log: EventLog): Promise<VersionStatus[]> {
  const registered = await readRegistry(db);
  const rebuilds = await readRebuilds(db);
  const letters = await countDeadLetters(db);
  // After the checkpoints, so that none of them is ahead of it.
  const head = await log.head();
  return registered.map((entry) => ({
    name: entry.name,
    version: entry.version,
    state: entry.state,
    processor: entry.status,
    owner: entry.owner,
    position: entry.checkpoint,
    head,
    lag: head - entry.checkpoint,
    heldReason: entry.heldReason,
    error: entry.error,
    deadLetters: letters.find(({ name, version }) => name === entry.name && version === entry.version)?.letters ?? 0,
    rebuild: rebuilds.find(({ name, version }) => name === entry.name && version === entry.version) ?? null,
  }));
}
