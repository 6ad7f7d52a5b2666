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
  const { loads, owned } = loadsOf(processes);
  const free = new Set<string>();
  for (const { declares } of loads) for (const unit of declares) if (!owned.has(unit)) free.add(unit);
  for (const unit of [...free].sort(compare)) leastLoaded(loads, unit)?.add(unit);
  for (;;) {
    const chain = chainOfMoves(loads);
    if (!chain) break;
    for (const { from, to, unit } of chain) {
      from.delete(unit);
      to.add(unit);
    }
  }
  return new Map(loads.flatMap(({ id, units }) => [...units].map((unit) => [unit, id] as const)));
}

/**
 * Returns a function that decides who takes over the units of a process that is gone: those that declare them, in turns, beginning with the
 * process that has the fewest. It is called for each process at each change, so it is quick, and {@link spreadUnits} evens out what is left.
 */
export function heirsAmong(
  processes: readonly AnnouncedProcess[],
): (gone: AnnouncedProcess) => ReadonlyMap<string, string> {
  const sorted = loadsOf(processes).loads.toSorted((a, b) => a.units.size - b.units.size || compare(a.id, b.id));
  return ({ id, owns }) => {
    const others = sorted.filter((load) => load.id !== id);
    const heirs = new Map<string, string>();
    let turn = 0;
    for (const unit of owns.toSorted(compare)) {
      const inTurn = others.findIndex((_, index) => others[(turn + index) % others.length]?.declares.has(unit));
      if (inTurn < 0) continue;
      turn += inTurn + 1;
      const heir = others[(turn - 1) % others.length];
      if (heir) heirs.set(unit, heir.id);
    }
    return heirs;
  };
}

/** What a process declares and has. */
class Load {
  readonly id: string;
  readonly declares: ReadonlySet<string>;
  readonly keeps: ReadonlySet<string>;
  readonly units = new Set<string>();
  readonly #ofVersion = new Map<string, number>();

  constructor({ id, declares, keeps }: AnnouncedProcess) {
    this.id = id;
    this.declares = setOf(declares);
    this.keeps = setOf(keeps);
  }

  add(unit: string): void {
    if (this.units.has(unit)) return;
    this.units.add(unit);
    this.#ofVersion.set(versionOf(unit), this.siblings(unit) + 1);
  }

  delete(unit: string): void {
    if (this.units.delete(unit)) this.#ofVersion.set(versionOf(unit), this.siblings(unit) - 1);
  }

  /** Counts the units of the same version: partitions of one version should be spread too. */
  siblings(unit: string): number {
    return this.#ofVersion.get(versionOf(unit)) ?? 0;
  }
}

function loadsOf(processes: readonly AnnouncedProcess[]): {
  readonly loads: readonly Load[];
  readonly owned: ReadonlySet<string>;
} {
  const sorted = processes.toSorted((a, b) => compare(a.id, b.id));
  // Two processes may claim the same unit for a moment; it counts once.
  const owned = new Set<string>();
  const loads = sorted.map((process) => {
    const load = new Load(process);
    for (const unit of process.owns) if (!owned.has(unit)) load.add(unit);
    for (const unit of process.owns) owned.add(unit);
    return load;
  });
  return { loads, owned };
}

/** Of those that declare the unit. */
function leastLoaded(loads: readonly Load[], unit: string): Load | undefined {
  let least: Load | undefined;
  for (const load of loads) {
    if (!load.declares.has(unit)) continue;
    const difference = least
      ? load.units.size - least.units.size || load.siblings(unit) - least.siblings(unit) || compare(load.id, least.id)
      : -1;
    if (difference < 0) least = load;
  }
  return least;
}

interface Move {
  readonly from: Load;
  readonly to: Load;
  readonly unit: string;
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
  let best: { readonly unit: string; readonly gain: number } | undefined;
  for (const unit of from.units) {
    if (!to.declares.has(unit) || from.keeps.has(unit)) continue;
    const gain = from.siblings(unit) - to.siblings(unit);
    if (!best || gain > best.gain || (gain === best.gain && unit < best.unit)) best = { unit, gain };
  }
  return best?.unit;
}

function path(reached: ReadonlyMap<Load, Move | undefined>, end: Load): Move[] {
  const moves: Move[] = [];
  for (let move = reached.get(end); move; move = reached.get(move.from)) moves.push(move);
  return moves;
}

/** Announcements that did not change are the same objects each time, and name hundreds of units. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

function setOf(units: readonly string[]): ReadonlySet<string> {
  const known = sets.get(units) ?? new Set(units);
  sets.set(units, known);
  return known;
}

function versionOf(unit: string): string {
  return unit.slice(0, unit.lastIndexOf('/'));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
