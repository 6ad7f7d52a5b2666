import type { VersionState } from '../../projections/projection/version-map.ts';
import { type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';

/** What tells the copies of a version apart. While a version moves to another read store, each of both stores has one. */
export interface Copy {
  readonly name: string;
  readonly version: number;
  readonly generation: number;
  /** Not null while the copy is being built, and if that was cancelled. */
  readonly arrivingFrom: string | null;
  readonly state: VersionState;
  /** The store to which the version has moved from here, unless it came back. */
  readonly movedTo: string | null;
}

/**
 * The copy of each version that counts: among those that are complete, the one of the highest generation. The others are maintained, too, so
 * each holds the fold of the log; a process that does not know the store of this copy answers from another one.
 *
 * A copy that was retired for a move counts only if the version's store is not known yet. It may have the higher generation: a database that has
 * lost its last transactions can have lost the one that brought its copy back.
 */
export function currentCopies<T extends Copy>(copies: readonly T[]): T[] {
  const current = new Map<string, T>();
  for (const copy of copies) {
    const id = `${copy.name}@${copy.version}`;
    const other = current.get(id);
    if (copy.arrivingFrom === null && (!other || isAbove(copy, other))) current.set(id, copy);
  }
  return [...current.values()];
}

function isAbove(copy: Copy, other: Copy): boolean {
  if (hasLeft(copy) !== hasLeft(other)) return hasLeft(other);
  return copy.generation > other.generation;
}

/** Whether the copy was retired because the version is in another store. */
function hasLeft({ state, movedTo }: Copy): boolean {
  return state === 'retired' && movedTo !== null;
}

// No version is rebuilt that often in one store.
const generationsOfCopy = 1000;

/** The first generation of a copy. Two copies of a version never have the same one: clients' cursors name it. */
export function nextCopy(generation: number): number {
  return (Math.floor(generation / generationsOfCopy) + 1) * generationsOfCopy;
}

type CopyKey = Pick<TableRow<'refold.projections'>, 'name' | 'version'>;

/** Makes a version that was just added or reset a copy that is being built. */
export async function beginArrival(tx: Queryable, key: CopyKey, from: string, generation: number): Promise<void> {
  await run(tx, ofCopy(key).set({ arriving_from: from, generation, moved_to: null }));
}

/** From now on, this copy counts. */
export async function endArrival(tx: Queryable, key: CopyKey): Promise<void> {
  await run(tx, ofCopy(key).set({ arriving_from: null }));
}

/** Makes this copy the one that counts, because its rows are another generation now. */
export async function raiseGeneration(tx: Queryable, key: CopyKey, generation: number): Promise<void> {
  await run(tx, ofCopy(key).set({ generation, moved_to: null }));
}

/** Records where a version is now that was in this copy. */
export async function recordMove(tx: Queryable, key: CopyKey, to: string): Promise<void> {
  await run(tx, ofCopy(key).set({ moved_to: to }));
}

/** The same right after the move, unless the version has come back meanwhile. */
export async function recordArrival(tx: Queryable, arrived: Pick<Copy, 'name' | 'version' | 'generation'>, to: string) {
  await run(tx, ofCopy(arrived).set({ moved_to: to }).where('generation', '<', arrived.generation));
}

/** The versions that are on their way to this store, locked in their order until the transaction ends. */
export async function lockArrivals(tx: Queryable) {
  return run(
    tx,
    refoldTables
      .selectFrom('refold.projections')
      .select(['name', 'version', 'state', 'generation', 'table_name as tableName', 'arriving_from as arrivingFrom'])
      .select(['held_by as heldBy', 'held_reason as heldReason'])
      .where('arriving_from', 'is not', null)
      .where('state', '<>', 'retired')
      .orderBy('name')
      .orderBy('version')
      .forNoKeyUpdate(),
  );
}

function ofCopy({ name, version }: CopyKey) {
  return refoldTables.updateTable('refold.projections').where('name', '=', name).where('version', '=', version);
}

/** Orders versions of several stores as a registry does. */
export function byVersion(
  a: { readonly name: string; readonly version: number },
  b: { readonly name: string; readonly version: number },
): number {
  return a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1;
}
