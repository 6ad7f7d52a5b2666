import type { VersionChange } from './version-changes.ts';

/** A change that stands for itself, and what follows from it. */
export interface FoldedChange<T extends VersionChange = VersionChange> {
  /** The most critical one, the row's own field first. */
  readonly head: T;
  /** The others of the same origin. */
  readonly derived: readonly T[];
}

/** Puts changes of one origin together, in the order of what is first of each: of a removed column its filters, orders and aggregates. */
export function foldChanges<T extends VersionChange>(changes: readonly T[]): readonly FoldedChange<T>[] {
  return [...Map.groupBy(changes, ({ origin }) => origin).values()].flatMap(([head, ...derived]) =>
    head ? [{ head, derived }] : [],
  );
}

/** Such as `1 breaking change`; what follows from a change is not counted. */
export function breakingText(changes: readonly VersionChange[]): string {
  const count = foldChanges(changes).filter(({ head }) => head.criticality === 'breaking').length;
  return `${count} breaking ${count === 1 ? 'change' : 'changes'}`;
}

/** Such as `Balance.amount was removed. (+ 12 derived)` */
export function foldedText({ head, derived }: FoldedChange): string {
  return derived.length === 0 ? head.message : `${head.message} (+ ${derived.length} derived)`;
}
