import type { Projection } from './projection.ts';

/**
 * Why a version of several partitions can't be in a store with the placement `partition`, which has its rows on several workers, and the way out.
 * Undefined if it can.
 *
 * @param all the versions that may be related to it
 */
export function distributedProblem(projection: Projection, all: readonly Projection[]): string | undefined {
  const { partitions, store } = projection;
  if (partitions === 1) return undefined;
  const unfit = unfitPart(projection, all);
  return (
    unfit &&
    `its ${partitions} partitions are distributed over the workers of a Citus cluster, which is the store '${store}', and it has ${unfit.what}: ${unfit.reason}. ${unfit.wayOut}, leave 'partitions' out, or name another store.`
  );
}

interface UnfitPart {
  readonly what: string;
  readonly reason: string;
  readonly wayOut: string;
}

function unfitPart({ name, sqlFold, relations, activation, snapshots }: Projection, all: readonly Projection[]) {
  const found = (what: string, reason: string, wayOut: string): UnfitPart => ({ what, reason, wayOut });
  if (sqlFold) return found("'evolveSql'", 'its statement would have to join rows of several workers', "Use 'evolve'");
  const [relation] = Object.keys(relations);
  const related = all.find((other) => Object.values(other.relations).some(({ target }) => target === name));
  if (relation !== undefined || related !== undefined)
    return found(
      relation === undefined ? `a relation from ${related?.id}` : `the relation '${relation}'`,
      'related rows would be on several workers, and are never of one snapshot',
      'Remove the relation',
    );
  if (activation.comparedColumns !== null)
    return found(
      "'activation.compareWith'",
      'two versions are compared in one snapshot, and workers have none in common',
      "Use 'activation.verify', which compares it with the log",
    );
  if (snapshots !== null)
    return found("'snapshots'", 'they are of one position, and partitions are at several', "Remove 'snapshots'");
  return undefined;
}
