import type { VersionChange } from './version-changes.ts';

/** A change, and the changes that follow from it. */
export interface FoldedChange<T extends VersionChange = VersionChange> {
  /** The most critical change of the group; the row's own field comes first. */
  readonly head: T;
  /** The other changes of the same origin. */
  readonly derived: readonly T[];
}

/**
 * Groups changes by origin, in the order of the first change of each group. For example, a removed column with its filters, orders and
 * aggregates.
 */
export function foldChanges<T extends VersionChange>(changes: readonly T[]): readonly FoldedChange<T>[] {
  return [...Map.groupBy(changes, ({ origin }) => origin).values()].flatMap(([head, ...derived]) =>
    head ? [{ head, derived }] : [],
  );
}

/** Such as `1 breaking change`. Derived changes are not counted. */
export function breakingText(changes: readonly VersionChange[]): string {
  const count = foldChanges(changes).filter(({ head }) => head.criticality === 'breaking').length;
  return `${count} breaking ${count === 1 ? 'change' : 'changes'}`;
}
