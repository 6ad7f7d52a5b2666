import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Discarded } from '../../projections/fold/discarded.ts';
import type { FloorLayer } from '../../projections/projection/partition.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { readBlockedKeys } from '../../store/processors/dead-letters.ts';
import { readDiscardsOf } from '../../store/processors/discards.ts';
import type { KeyShare } from '../../store/set-based/row-choice.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** The rows into which one event is not folded: their keys as `keyText` writes them, or all. */
export type LeftOutRows = 'all' | ReadonlySet<string>;

/** The discarded events of a fold, by position. */
export function rowsByPosition(discarded: Discarded): ReadonlyMap<bigint, LeftOutRows> {
  const found = new Map<bigint, LeftOutRows>();
  for (const text of discarded) {
    const [, position = '', key = ''] = /^(\d+) (.*)$/s.exec(text) ?? [];
    const known = found.get(BigInt(position));
    if (key === 'null') found.set(BigInt(position), 'all');
    else if (known !== 'all') found.set(BigInt(position), new Set([...(known ?? []), key]));
  }
  return found;
}

/**
 * Where batches must end: a batch whose rows are computed together must hold the same events for each of them. So an event that is left out of some
 * row is a batch by itself, and no batch crosses a position from which on other rows are folded.
 */
export function cutsAround(leftOut: Iterable<bigint>, changes: Iterable<bigint>): readonly bigint[] {
  const cuts = new Set(changes);
  for (const position of leftOut) cuts.add(position).add(position - 1n);
  return [...cuts].sort((a, b) => (a < b ? -1 : 1));
}

/** The first cut after a position, or the end. */
export function nextCut(cuts: readonly bigint[], after: GlobalPosition, end: GlobalPosition): GlobalPosition {
  let low = 0;
  for (let high = cuts.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((cuts[middle] as bigint) > after)
      high = middle; // middle < high
    else low = middle + 1;
  }
  const cut = cuts[low];
  return cut !== undefined && cut < end ? globalPosition(cut) : end;
}

/** The keys of layers whose checkpoints reached a position. */
export function reachedShares(layers: readonly FloorLayer[], position: bigint): KeyShare[] {
  return layers
    .map(({ of, checkpoints }) => ({
      of,
      partitions: checkpoints.flatMap((checkpoint, partition) => (checkpoint >= position ? [partition] : [])),
    }))
    .filter(({ partitions }) => partitions.length > 0);
}

/** What a fold leaves out of its rows. */
export interface LeftOut {
  /** The keys of rows that wait for a dead letter. */
  readonly blocked: Set<string>;
  /** Read once: a later discard raises the epoch, and this fold ends. */
  readonly discards: ReadonlyMap<bigint, LeftOutRows>;
  readonly cuts: readonly bigint[];
}

/** Reads what a fold leaves out, when it begins. */
export async function readLeftOut({ db, projection, claim }: FoldOfTable): Promise<LeftOut> {
  const discards = rowsByPosition(await readDiscardsOf(db, claim));
  const stops = projection.onError.policy === 'stop';
  return {
    blocked: new Set(stops ? [] : await readBlockedKeys(db, projection.tableName)),
    discards,
    cuts: cutsAround(
      discards.keys(),
      claim.floors.flatMap(({ checkpoints }) => checkpoints),
    ),
  };
}

interface FoldOfTable {
  readonly db: Queryable;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
}
