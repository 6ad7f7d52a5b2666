import { setTimeout as pause } from 'node:timers/promises';
import type { ReadStore } from '../src/store/read-store.ts';
import { type AuditedStep, readStepsOf } from './audit.ts';
import { cpuWaitMilliseconds } from './cpu-pressure.ts';
import { versioned } from './domain.ts';
import type { Place } from './place.ts';
import type { AppProcess } from './processes.ts';
import { isAway } from './traffic.ts';

/** A processor whose owner is gone. */
export interface Orphan {
  /** The name of the store that has it. */
  readonly store: string;
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  /** The former owner's epoch. */
  readonly epoch: bigint;
}

interface Loss {
  readonly cause: FailOver['cause'];
  readonly at: number;
  /** No other action was performed until the work had new owners. */
  readonly watched: boolean;
  readonly orphans: readonly Orphan[];
}

export interface FailOver {
  /** `cut off`: only from the store, which it does not reach. */
  readonly cause: 'kill' | 'stall' | 'cut off';
  /** Such as `sales@1`. */
  readonly processor: string;
  /** The name of the store that has it. */
  readonly store: string;
  readonly milliseconds: number;
  /** The part of it in which the machine had no processor for a process that could run. The promised bound does not count it. */
  readonly cpuWaitMilliseconds: number;
  /** Whether no other fault was active meanwhile. The promised bound holds only then. */
  readonly alone: boolean;
}

export interface FailOvers {
  /** Another fault begins, or one that lasts ends. */
  disturbed(watched: boolean): void;
  /** What a process owns and another running process could take over. */
  ownedBy(worker: AppProcess): Promise<readonly Orphan[]>;
  /** Resolves when all orphans of a watched loss have a new owner, or after a time that is too long for any of them; else at once. */
  expect(loss: Loss): Promise<void>;
  measured(): Promise<readonly FailOver[]>;
}

/** The measurement stops waiting for an owner after this time. */
const tooLongMs = 60_000;

/** Measures how long processors have no owner, from the servers' records. */
export function createFailOvers(stores: readonly ReadStore[], workers: readonly Place[]): FailOvers {
  const losses: (Loss & { cpuWait: number })[] = [];
  const faults: number[] = [];

  return {
    disturbed: (watched) => void (watched || faults.push(Date.now())),
    async ownedBy(worker) {
      const owned = (await Promise.all(stores.map((store) => readOwned(store, worker.owner)))).flat();
      const others = workers.flatMap(({ process }) =>
        process && process !== worker && !process.stopped ? [process] : [],
      );
      return owned.filter(({ name, version }) =>
        others.some((other) => !(name in versioned) || (other.lowest <= version && version <= other.highest)),
      );
    },
    async expect(given) {
      const loss = { ...given, cpuWait: 0 };
      losses.push(loss);
      if (!given.watched) return;
      const before = await cpuWaitMilliseconds();
      await settled(stores, given.orphans);
      loss.cpuWait = (await cpuWaitMilliseconds()) - before;
    },
    async measured() {
      const steps = await readStepsOf(stores);
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
          return [{ cause, processor, store: orphan.store, milliseconds, cpuWaitMilliseconds, alone }];
        }),
      );
    },
  };
}

/** Empty while the store is away. */
async function readOwned({ name: store, db }: ReadStore, owner: string): Promise<readonly Orphan[]> {
  const statement = {
    text: `
      select $2 as store, name, version, partition, epoch
      from refold.processors
      join refold.projections using (name, version)
      where owner = $1 and state <> 'retired'
      union all
      select $2, name, 0, 0, epoch from refold.reactors where owner = $1
      order by name, version, partition`,
    values: [owner, store],
  };
  return db.query<Orphan>(statement).catch(noneIfAway);
}

function noneIfAway(error: unknown): readonly never[] {
  if (isAway(error)) return [];
  throw error;
}

async function settled(stores: readonly ReadStore[], orphans: readonly Orphan[]): Promise<void> {
  const deadline = Date.now() + tooLongMs;
  for (let left = orphans; left.length > 0 && Date.now() < deadline; await pause(20)) {
    const claims = (await Promise.all(stores.map((store) => readClaims(store).catch(noneIfAway)))).flat();
    left = left.filter((orphan) => !claims.some((claim) => isSameUnit(claim, orphan) && claim.epoch > orphan.epoch));
  }
}

/** The latest claim of each processor. Not the recorded steps: reading them all, many times a second, would slow down what is measured. */
const readClaims = ({ name, db }: ReadStore) =>
  db.query<Orphan>({
    text: `
      select $1::text as store, name, version, partition, epoch from refold.processors
      union all
      select $1::text, name, 0, 0, epoch from refold.reactors`,
    values: [name],
  });

function isSameUnit(a: Omit<Orphan, 'epoch'>, b: Orphan): boolean {
  return a.store === b.store && a.name === b.name && a.version === b.version && a.partition === b.partition;
}

function takenOver(orphan: Orphan, steps: readonly AuditedStep[]): AuditedStep | undefined {
  return steps.find((step) => isSameUnit(step, orphan) && step.epoch > orphan.epoch && step.status === 'running');
}
