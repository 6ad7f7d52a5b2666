import { isDeepStrictEqual } from 'node:util';
import {
  type AnnouncedProcess,
  announceProcess,
  exchangeHeartbeats,
  forgetProcesses,
  type HeardProcess,
  type KnownVersions,
  type LiveProcesses,
  type OtherProcess,
  readAnnouncements,
  withdrawProcess,
} from '../../store/ownership/processes.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { ProcessDescription } from './presence.ts';
import { heirsAmong, spreadUnits } from './spread-units.ts';

/** What a process announces about itself. Units are named by `unitText`. */
export type Standing = Omit<AnnouncedProcess, 'id'>;

/** Returns the units that this process leaves to others, because they can read events that it can't. */
export type LeftToOthers = (others: readonly OtherProcess[]) => readonly string[];

/** The assignment of a process. */
export interface Assignment {
  /** Units to release: another process that declares them has fewer, or can read more of their events. */
  readonly release: readonly string[];
  /** Units to take if they are free. */
  readonly take: readonly string[];
  /**
   * For each other process, the units to take over if it is gone. Trying the first unit shows whether it is: its locks end with it, while its
   * announcement remains for seconds.
   */
  readonly takeOver: readonly { readonly process: string; readonly units: readonly string[] }[];
}

/** Rebalances units between the processes that share them. */
export interface Rebalancer {
  /** Announces this process and returns its assignment. Call it periodically: it is also the heartbeat. */
  next(standing: Standing, leftToOthers?: LeftToOthers): Promise<Assignment>;
  /** Announces this process, and returns the others that maintain units. */
  others(standing: Standing): Promise<readonly OtherProcess[]>;
  announce(standing: Standing): Promise<void>;
  /**
   * Removes the announcement of a process found to be gone, so the others need not find out too. If it is alive after all, it announces
   * itself again.
   */
  declareGone(process: string): Promise<void>;
  /** Withdraws this process. */
  leave(): Promise<void>;
}

// Ten missed heartbeats. A process that is alive all the same keeps its units, because locks decide about ownership.
const goneAfterSeconds = 5;
const forgottenAfterSeconds = 60;
// If the assigned process does not take a free unit, any process may take it after the time in which the assigned one would count as gone.
const freeLongMilliseconds = goneAfterSeconds * 1000;

export function createRebalancer(db: Queryable, described: ProcessDescription): Rebalancer {
  const { id } = described;
  const freeSince = new Map<string, number>();
  let forgotten = Number.NEGATIVE_INFINITY;
  let heard: ReadonlyMap<string, HeardProcess> = new Map(); // by standing
  let announced: { readonly text: string; readonly hash: bigint } | undefined;
  let last: { readonly of: readonly unknown[]; readonly assignment: Assignment } | undefined;

  /** One after the other: of two calls, the later one knows what the earlier one has announced and heard. */
  let turn: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = turn.then(work);
    turn = done.catch(() => {});
    return done;
  }

  async function announce(standing: Standing): Promise<void> {
    const hash = await announceProcess(db, { ...described, ...standing });
    announced = { text: textOf(standing), hash };
  }

  /**
   * Announces what has changed, and returns what the others announce. The object of one stays the same until it announces something else. The
   * announcement is committed before the others are read: of two processes that start at the same moment, at least one must see the other, or
   * both would take everything.
   */
  async function exchange(standing: Standing): Promise<readonly OtherProcess[]> {
    const { others } = await beat(standing);
    const unknown = others.filter((one) => !heard.has(one));
    const found = unknown.length === 0 ? [] : await readAnnouncements(db, unknown);
    const known = new Map([...heard.values(), ...found].map((process) => [process.standing, process]));
    // One that announced something else since its heartbeat is found by the new text.
    heard = new Map(
      [...others, ...found.map(({ standing }) => standing)].flatMap((one) => {
        const process = known.get(one);
        return process ? [[one, process]] : [];
      }),
    );
    // Those that answer clients only maintain nothing.
    return [...heard.values()].filter(({ declares }) => declares.length > 0);
  }

  /** Another process may have taken this one for gone, and removed its announcement. */
  async function beat(standing: Standing): Promise<LiveProcesses> {
    for (;;) {
      if (announced?.text !== textOf(standing)) await announce(standing);
      const live = await exchangeHeartbeats(db, id, goneAfterSeconds);
      if (live.ownHash === announced?.hash) return live;
      announced = undefined;
    }
  }

  /** The former assignment, if it follows from the same: that of many processes takes long to compute, and seldom changes. */
  function unlessSame(of: readonly unknown[], assign: () => Assignment): Assignment {
    if (!last || last.of.length !== of.length || last.of.some((one, index) => one !== of[index]))
      last = { of, assignment: assign() };
    return last.assignment;
  }

  function freeLong(free: ReadonlySet<string>): ReadonlySet<string> {
    const now = performance.now();
    for (const unit of freeSince.keys()) if (!free.has(unit)) freeSince.delete(unit);
    for (const unit of free) if (!freeSince.has(unit)) freeSince.set(unit, now);
    return new Set([...freeSince].filter(([, since]) => now - since > freeLongMilliseconds).map(([unit]) => unit));
  }

  async function forget(): Promise<void> {
    if (performance.now() - forgotten < forgottenAfterSeconds * 1000) return;
    forgotten = performance.now();
    await forgetProcesses(db, forgottenAfterSeconds);
  }

  return {
    async next(standing, leftToOthers = () => []) {
      await forget();
      const all = await inTurn(() => exchange(standing));
      // What other processes can read decides for a unit only if they know other versions than this one.
      const left = new Set(leftToOthers(all.filter((other) => !isEquallyAble(other, described))));
      const able = {
        id,
        declares: standing.declares.filter((unit) => !left.has(unit)),
        owns: standing.owns.filter((unit) => !left.has(unit)),
        keeps: standing.keeps.filter((unit) => !left.has(unit)),
      };
      const longFree = freeLong(freeUnits(able, all));
      return unlessSame([textOf(standing), [...left].join(), [...longFree].join(), ...all], () => {
        const mine = new Set(standing.owns);
        // A unit of this process has no other owner, whatever was announced before.
        const others = all.map((process) => ({ ...process, owns: process.owns.filter((unit) => !mine.has(unit)) }));
        const { release, ...assignment } = assignmentOf(able, others, longFree);
        return { release: [...release, ...standing.owns.filter((unit) => left.has(unit))], ...assignment };
      });
    },
    others: (standing) => inTurn(() => exchange(standing)),
    announce: (standing) => inTurn(() => announce(standing)),
    declareGone: (process) => withdrawProcess(db, process),
    leave: () => withdrawProcess(db, id),
  };
}

function textOf({ declares, owns, keeps }: Standing): string {
  return [declares, owns, keeps].map((units) => units.join()).join(' ');
}

function isEquallyAble(other: KnownVersions, { payloadVersions, reactorVersions }: KnownVersions): boolean {
  return (
    isDeepStrictEqual(other.payloadVersions, payloadVersions) &&
    isDeepStrictEqual(other.reactorVersions, reactorVersions)
  );
}

/** The units that the process declares and nobody owns. */
function freeUnits(own: AnnouncedProcess, others: readonly AnnouncedProcess[]): ReadonlySet<string> {
  const owned = new Set([...own.owns, ...others.flatMap(({ owns }) => owns)]);
  return new Set(own.declares.filter((unit) => !owned.has(unit)));
}

function assignmentOf(
  own: AnnouncedProcess,
  others: readonly AnnouncedProcess[],
  longFree: ReadonlySet<string>,
): Assignment {
  const owned = new Set(own.owns);
  const wanted = new Set(own.declares.filter((unit) => !owned.has(unit)));
  const spread = spreadUnits([own, ...others]);
  const heirsOf = heirsAmong([own, ...others]);
  const isMine = (unit: string) => spread.get(unit) === own.id;
  return {
    release: own.owns.filter((unit) => !isMine(unit)),
    take: [...wanted].filter((unit) => isMine(unit) || longFree.has(unit)),
    takeOver: others.map((gone) => {
      const heirs = heirsOf(gone);
      const units = gone.owns.filter((unit) => wanted.has(unit) && heirs.get(unit) === own.id);
      return { process: gone.id, units };
    }),
  };
}
