import type { AnnouncedProcess } from '../../store/ownership/processes.ts';

/**
 * Decides which process should own which unit: as evenly as the declarations allow, with as few moves as possible. Every process computes
 * the same result from the same announcements, so they agree without further messages. If units are already spread evenly, nothing
 * moves.
 *
 * Evenly means that no chain of moves would take a unit from a process to one that has at least two fewer: an optimal semi-matching
 * (Harvey, Ladner, Lovász, Tamir: "Semi-matchings for bipartite graphs and load balancing", 2006).
 *
 * @returns the id of a process for each unit that any process declares or owns
 */
export function spreadUnits(processes: readonly AnnouncedProcess[]): ReadonlyMap<string, string> {
  const sorted = processes.toSorted((a, b) => compare(a.id, b.id));
  const loads = new Map<string, Load>(sorted.map((process) => [process.id, newLoad(process)]));
  // Two processes may claim the same unit for a moment; it counts once.
  const owned = new Set<string>();
  for (const { id, owns } of sorted) {
    for (const unit of owns) if (!owned.has(unit)) loads.get(id)?.units.add(unit);
    for (const unit of owns) owned.add(unit);
  }
  const all = [...loads.values()];
  const free = new Set(sorted.flatMap(({ declares }) => declares).filter((unit) => !owned.has(unit)));
  for (const unit of [...free].sort(compare)) {
    const [least] = all
      .filter(({ declares }) => declares.has(unit))
      .sort((a, b) => a.units.size - b.units.size || siblings(a, unit) - siblings(b, unit) || compare(a.id, b.id));
    least?.units.add(unit);
  }
  for (;;) {
    const chain = chainOfMoves(all);
    if (!chain) break;
    for (const { from, to, unit } of chain) {
      from.units.delete(unit);
      to.units.add(unit);
    }
  }
  return new Map(all.flatMap(({ id, units }) => [...units].map((unit) => [unit, id] as const)));
}

interface Load {
  readonly id: string;
  readonly declares: ReadonlySet<string>;
  readonly keeps: ReadonlySet<string>;
  readonly units: Set<string>;
}

interface Move {
  readonly from: Load;
  readonly to: Load;
  readonly unit: string;
}

function newLoad({ id, declares, keeps }: AnnouncedProcess): Load {
  return { id, declares: new Set(declares), keeps: new Set(keeps), units: new Set() };
}

/**
 * Finds the shortest chain of moves to a process with at least two units fewer: the first loses one, the last gains one, those between keep
 * their number.
 */
function chainOfMoves(loads: readonly Load[]): Move[] | undefined {
  const least = Math.min(...loads.map(({ units }) => units.size));
  for (const start of loads.toSorted((a, b) => b.units.size - a.units.size || compare(a.id, b.id))) {
    if (start.units.size - least < 2) return undefined;
    const reached = new Map<Load, Move | undefined>([[start, undefined]]);
    for (const from of reached.keys()) {
      const others = loads
        .filter((load) => !reached.has(load))
        .sort((a, b) => a.units.size - b.units.size || compare(a.id, b.id));
      for (const to of others) {
        const unit = movable(from, to);
        if (unit === undefined) continue;
        reached.set(to, { from, to, unit });
        if (start.units.size - to.units.size >= 2) return path(reached, to);
      }
    }
  }
  return undefined;
}

/** Returns the best unit to move: of the version with the most partitions on `from` and the fewest on `to`. */
function movable(from: Load, to: Load): string | undefined {
  const gain = (unit: string) => siblings(from, unit) - siblings(to, unit);
  return [...from.units]
    .filter((unit) => to.declares.has(unit) && !from.keeps.has(unit))
    .sort((a, b) => gain(b) - gain(a) || compare(a, b))[0];
}

function path(reached: ReadonlyMap<Load, Move | undefined>, end: Load): Move[] {
  const moves: Move[] = [];
  for (let move = reached.get(end); move; move = reached.get(move.from)) moves.push(move);
  return moves;
}

/** Counts the units of the same version: partitions of one version should be spread too. */
function siblings({ units }: Load, unit: string): number {
  const version = versionOf(unit);
  let count = 0;
  for (const other of units) if (versionOf(other) === version) count++;
  return count;
}

function versionOf(unit: string): string {
  return unit.slice(0, unit.lastIndexOf('/'));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
