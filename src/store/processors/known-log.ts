import type { GlobalPosition } from '../../events/global-position.ts';
import { type CheckedAnchor, readLostHistory, readNextAnchor } from '../statements/log-anchors.ts';
import type { Queryable } from '../statements/statement.ts';
import type { StoredFloors } from '../statements/stored-json.ts';

/** What the owner of a unit knows of a log in another database. */
export interface KnownLog {
  /** When the log's server was started, as of the claim. */
  readonly start: bigint;
  /** The anchors of the checkpoint, and of the next one once it is read: batches of one claim follow each other. */
  anchors: ReadonlyMap<GlobalPosition, string | null>;
}

/** Reads what the claim of a unit must know of the log, and whether the log has lost events that the unit has taken in. */
export async function readKnownLog(
  log: Queryable,
  checkpoint: GlobalPosition,
  anchor: string | null,
  floors: StoredFloors | null,
): Promise<{ readonly known: KnownLog } & Pick<CheckedAnchor, 'lost' | 'checked'>> {
  const { lost, serverStart, checked } = await readLostHistory(log, checkpoint, anchor);
  // Rows of positions beyond the checkpoint, from another number of partitions.
  const beyond = floors?.anchor ? await readLostHistory(log, BigInt(floors.until), floors.anchor) : undefined;
  const known = { start: serverStart, anchors: new Map([[checkpoint, checked]]) };
  return { known, lost: lost ?? (beyond?.lost ? 'other' : null), checked };
}

/** The anchor of the checkpoint `to` that follows `from`; undefined if the log's server was started again, and may have lost the events between. */
export async function nextAnchor(
  log: Queryable,
  known: KnownLog,
  from: GlobalPosition,
  to: GlobalPosition,
): Promise<{ readonly text: string | null } | undefined> {
  const previous = known.anchors.get(from) ?? null;
  const { anchor, serverStart } = await readNextAnchor(log, previous, from, to);
  if (serverStart !== known.start) return undefined;
  // The batch may fail, and a smaller one may begin at the same checkpoint.
  known.anchors = new Map([
    [from, previous],
    [to, anchor],
  ]);
  return { text: anchor };
}
