import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../src/store/postgres/database.ts';
import { type AuditedStep, readSteps } from './audit.ts';
import { cpuWaitMilliseconds } from './cpu-pressure.ts';
import type { Place } from './place.ts';
import type { AppProcess } from './processes.ts';
import { isAway } from './traffic.ts';

/** A processor whose owner is gone. */
export interface Orphan {
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  /** The former owner's epoch. */
  readonly epoch: bigint;
}

interface Loss {
  readonly cause: 'kill' | 'stall';
  readonly at: number;
  /** No other action was performed until the work had new owners. */
  readonly watched: boolean;
  readonly orphans: readonly Orphan[];
}

export interface FailOver {
  readonly cause: 'kill' | 'stall';
  readonly processor: string;
  readonly milliseconds: number;
  /** The part of it in which the machine had no processor for a process that could run. The promised bound does not count it. */
  readonly cpuWaitMilliseconds: number;
  /** Whether no other fault was active meanwhile. The promised bound holds only then. */
  readonly alone: boolean;
}

export interface FailOvers {
  /** Another fault begins. */
  disturbed(watched: boolean): void;
  /** What a process owns and another running process could take over. */
  ownedBy(worker: AppProcess): Promise<readonly Orphan[]>;
  /** Resolves when all orphans of a watched loss have a new owner, or after a time that is too long for any of them; else at once. */
  expect(loss: Loss): Promise<void>;
  measured(): Promise<readonly FailOver[]>;
}

/** The measurement stops waiting for an owner after this time. */
const tooLongMs = 60_000;

/** Measures how long processors have no owner, from the server's records. */
export function createFailOvers(db: Database, workers: readonly Place[]): FailOvers {
  const losses: (Loss & { cpuWait: number })[] = [];
  const faults: number[] = [];

  return {
    disturbed: (watched) => void (watched || faults.push(Date.now())),
    async ownedBy(worker) {
      const owned = await db.query<Orphan>({
        text: `
          select name, version, partition, epoch
          from refold.processors
          join refold.projections using (name, version)
          where owner = $1 and state <> 'retired'
          union all
          select name, 0, 0, epoch from refold.reactors where owner = $1
          order by name, version, partition`,
        values: [worker.owner],
      });
      const others = workers.flatMap(({ process }) =>
        process && process !== worker && !process.stopped ? [process] : [],
      );
      return owned.filter(({ name, version }) =>
        others.some((other) => name !== 'balance' || (other.lowest <= version && version <= other.highest)),
      );
    },
    async expect(given) {
      const loss = { ...given, cpuWait: 0 };
      losses.push(loss);
      if (!given.watched) return;
      const before = await cpuWaitMilliseconds();
      await settled(db, given.orphans);
      loss.cpuWait = (await cpuWaitMilliseconds()) - before;
    },
    async measured() {
      const steps = await readSteps(db);
      return losses.flatMap(({ cause, at, watched, orphans, cpuWait }) =>
        orphans.flatMap((orphan) => {
          const taken = takenOver(orphan, steps);
          // Without `watched`, there may be no other process left to take over.
          if (!taken && !watched) return [];
          const until = taken?.at ?? at + tooLongMs;
          const alone = watched && !faults.some((fault) => fault >= at && fault <= until);
          const processor = `${orphan.name}@${orphan.version}`;
          const milliseconds = Math.round(until - at);
          const cpuWaitMilliseconds = Math.min(Math.round(cpuWait), milliseconds);
          return [{ cause, processor, milliseconds, cpuWaitMilliseconds, alone }];
        }),
      );
    },
  };
}

async function settled(db: Database, orphans: readonly Orphan[]): Promise<void> {
  const deadline = Date.now() + tooLongMs;
  for (let left = orphans; left.length > 0 && Date.now() < deadline; await pause(20)) {
    const claims = await readClaims(db).catch((error: unknown) => {
      if (isAway(error)) return [];
      throw error;
    });
    left = left.filter((orphan) => !claims.some((claim) => isSameUnit(claim, orphan) && claim.epoch > orphan.epoch));
  }
}

/** The latest claim of each processor. Not the recorded steps: reading them all, many times a second, would slow down what is measured. */
const readClaims = (db: Database) =>
  db.query<Orphan>({
    text: `
      select name, version, partition, epoch from refold.processors
      union all
      select name, 0, 0, epoch from refold.reactors`,
  });

function isSameUnit(a: Pick<Orphan, 'name' | 'version' | 'partition'>, b: Orphan): boolean {
  return a.name === b.name && a.version === b.version && a.partition === b.partition;
}

function takenOver(orphan: Orphan, steps: readonly AuditedStep[]): AuditedStep | undefined {
  return steps.find((step) => isSameUnit(step, orphan) && step.epoch > orphan.epoch && step.status === 'running');
}
