import { setTimeout as pause } from 'node:timers/promises';
import { readStatus } from '../src/runtime/monitoring/status.ts';
import type { EventLog } from '../src/store/event-log.ts';
import type { Database } from '../src/store/postgres/database.ts';
import { readReactors } from '../src/store/reactors/reactors.ts';
import { type Rebuild, readRebuilds } from '../src/store/registry/rebuilds.ts';
import { cpuWaitMilliseconds } from './cpu-pressure.ts';
import { isAway } from './traffic.ts';

/** A version or a reactor, and how far it is. */
export interface Unit {
  readonly id: string;
  readonly position: bigint;
  /** The rebuild of its table, and how far that is: it may be what the version waits for. */
  readonly rebuild?: Pick<Rebuild, 'requestedAt' | 'checkpoint'> | undefined;
}

/** The versions and reactors of one database. */
export async function readUnits(db: Database, log: EventLog): Promise<readonly Unit[]> {
  const versions = (await readStatus(db, log)).filter(({ state }) => state !== 'retired');
  const rebuilds = await readRebuilds(db);
  return [
    ...versions.map(({ name, version, position }) => ({
      id: `${name}@${version}`,
      position,
      rebuild: rebuilds.find((one) => one.name === name && one.version === version),
    })),
    ...(await readReactors(db)).map(({ name, checkpoint }) => ({ id: name, position: checkpoint })),
  ];
}

/** Several times the longest back-off of a worker. */
const stillMs = 30_000;
/** On a machine that is always busy. */
const longestStillMs = 120_000;

/**
 * Waits until all units have reached a position. If none of the others moves for {@link stillMs}, without the time in which no processor was free,
 * returns them, as texts. A rebuild of a long log may take any time.
 */
export async function standingBefore(position: bigint, read: () => Promise<readonly Unit[]>): Promise<string[]> {
  const furthest = new Map<string, bigint>();
  const advances = (what: string, position: bigint) => {
    const isFurther = position > (furthest.get(what) ?? -1n);
    if (isFurther) furthest.set(what, position);
    return isFurther;
  };
  let since = Date.now();
  let waited = await cpuWaitMilliseconds();
  for (;;) {
    const units = await read().catch((error: unknown): readonly Unit[] => {
      if (isAway(error)) return [{ id: String(error), position: -1n }];
      throw error;
    });
    const left = units.filter((unit) => unit.position < position);
    if (left.length === 0) return [];
    const moved = left.filter(
      ({ id, position: at, rebuild }) =>
        advances(id, at) || (rebuild && advances(`${id}, rebuild of ${rebuild.requestedAt}`, rebuild.checkpoint)),
    );
    if (moved.length > 0) {
      since = Date.now();
      waited = await cpuWaitMilliseconds();
    }
    const still = Date.now() - since;
    if (still > longestStillMs || still - ((await cpuWaitMilliseconds()) - waited) > stillMs)
      return left.map((unit) => `${unit.id} stays at ${unit.position}, before ${position}`);
    await pause(50);
  }
}
