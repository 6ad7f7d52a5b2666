import { randomUUID } from 'node:crypto';
import {
  type AnnouncedProcess,
  announceProcess,
  exchangeAnnouncements,
  forgetProcesses,
  withdrawProcess,
} from '../../store/ownership/processes.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import type { ProcessDescription } from './presence.ts';
import { spreadUnits } from './spread-units.ts';

/** What a process has to say of itself. Units are named by `unitText`. */
export type Standing = Omit<AnnouncedProcess, 'id'>;

/** What a process should do now. */
export interface Shares {
  /** Units to let go of: another process that declares them has fewer. */
  readonly surplus: readonly string[];
  /** Units to take where they are free. */
  readonly take: readonly string[];
  /**
   * For each other process, what this one would take over if it were gone. Whether it is gone shows at the first unit: its announcement
   * outlives it by seconds, its locks don't.
   */
  readonly inherit: readonly { readonly process: string; readonly units: readonly string[] }[];
}

/** This process among those that share the work. */
export interface WorkShares {
  /** Announces this process and tells it its share. To be called every now and then: that is its sign of life. */
  next(standing: Standing): Promise<Shares>;
  announce(standing: Standing): Promise<void>;
  /** Another process was found to be gone: the others need not find out too. If it lives after all, it announces itself again. */
  declareGone(process: string): Promise<void>;
  /** It takes no more part. */
  leave(): Promise<void>;
}

// Ten signs of life are missing then. A process that lives on all the same keeps what it owns: ownership decides, not this.
const goneAfterSeconds = 5;
const forgottenAfterSeconds = 60;
// A unit that whoever should have it does not take is taken by anybody, once that one would count as gone.
const freeLongMilliseconds = goneAfterSeconds * 1000;

export function createWorkShares(db: Queryable, described: ProcessDescription): WorkShares {
  const id = randomUUID();
  const freeSince = new Map<string, number>();
  let forgotten = 0;
  let known = false;

  function freeLong(free: ReadonlySet<string>): ReadonlySet<string> {
    const now = Date.now();
    for (const unit of freeSince.keys()) if (!free.has(unit)) freeSince.delete(unit);
    for (const unit of free) if (!freeSince.has(unit)) freeSince.set(unit, now);
    return new Set([...freeSince].filter(([, since]) => now - since > freeLongMilliseconds).map(([unit]) => unit));
  }

  async function forget(): Promise<void> {
    if (Date.now() - forgotten < forgottenAfterSeconds * 1000) return;
    forgotten = Date.now();
    await forgetProcesses(db, forgottenAfterSeconds);
  }

  return {
    async next(standing) {
      const own = { id, ...described, ...standing };
      // Of two that start at the same moment, one at least has to see the other, or both would take everything.
      if (!known) await announceProcess(db, own);
      known = true;
      await forget();
      const mine = new Set(standing.owns);
      // What this process owns nobody else does, whatever was announced before.
      const others = (await exchangeAnnouncements(db, own, goneAfterSeconds)).map((process) => ({
        ...process,
        owns: process.owns.filter((unit) => !mine.has(unit)),
      }));
      return sharesOf({ id, ...standing }, others, freeLong);
    },
    announce: (standing) => announceProcess(db, { id, ...described, ...standing }),
    declareGone: (process) => withdrawProcess(db, process),
    leave: () => withdrawProcess(db, id),
  };
}

function sharesOf(
  own: AnnouncedProcess,
  others: readonly AnnouncedProcess[],
  freeLong: (free: ReadonlySet<string>) => ReadonlySet<string>,
): Shares {
  const wanted = own.declares.filter((unit) => !own.owns.includes(unit));
  const elsewhere = new Set(others.flatMap(({ owns }) => owns));
  const longFree = freeLong(new Set(wanted.filter((unit) => !elsewhere.has(unit))));
  const spread = spreadUnits([own, ...others]);
  const isMine = (unit: string) => spread.get(unit) === own.id;
  return {
    surplus: own.owns.filter((unit) => !isMine(unit)),
    take: wanted.filter((unit) => isMine(unit) || longFree.has(unit)),
    inherit: others.map((gone) => {
      const without = spreadUnits([own, ...others.filter((other) => other !== gone)]);
      const units = gone.owns.filter((unit) => wanted.includes(unit) && without.get(unit) === own.id);
      return { process: gone.id, units };
    }),
  };
}
