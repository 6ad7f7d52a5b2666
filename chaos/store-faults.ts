import { setTimeout as pause } from 'node:timers/promises';
import { apart } from './apart.ts';
import type { FailOvers } from './fail-overs.ts';
import type { Action } from './plan.ts';
import { type Running, withOneOf } from './running.ts';
import { acceptHeldRebuilds } from './settle.ts';
import { readUnits, standingBefore } from './standstill.ts';
import type { World } from './world.ts';

/** A fault of the read store in its own server. */
export type StoreFault = Extract<
  Action,
  { readonly kind: 'restart the store' | 'store away' | 'cut off from the store' }
>;

/** A time in which the store did not respond, and no other fault was active. */
export interface StoreOutage {
  readonly how: 'down' | 'silent';
  /** In milliseconds since 1970, without the moment in which effects of former faults end. */
  readonly from: number;
  readonly to: number;
  /** How many positions the log grew meanwhile. */
  readonly appended: number;
  /** What is not in the store, and did not take in what was appended meanwhile. */
  readonly stuck: readonly string[];
  /** The versions of the store that did not take it in afterwards. */
  readonly behind: readonly string[];
  /** How long those of the store took for it. */
  readonly caughtUpMs: number;
}

export interface StoreFaultsOptions {
  readonly world: World;
  readonly failOvers: FailOvers;
  /** Continues while other actions are performed. */
  last(work: Promise<void>): void;
  /** Ends the lasting faults, and resolves when everything works again. */
  quiet(): Promise<void>;
}

// A connection that a former fault has broken may be noticed in its next use.
const afterEffectsMs = 1_000;

export interface StoreFaults {
  /** Returns a line about the result. */
  perform(fault: StoreFault): Promise<string>;
  /** Ends those that last. */
  heal(): void;
}

export function createStoreFaults({ world, failOvers, last, quiet }: StoreFaultsOptions): StoreFaults {
  const { storeServer, stores, log, options } = world;
  let healed = new AbortController();

  async function lasts(milliseconds: number, end: () => void | Promise<void>): Promise<void> {
    await pause(milliseconds, undefined, { signal: healed.signal }).catch(() => {});
    await end();
  }

  async function watchedOutage(how: StoreOutage['how'], seconds: number): Promise<string> {
    await quiet();
    const { home } = stores.stores;
    const own = stores.stores.of({ store: apart });
    const before = await log.head();
    const end = await storeServer.vanish(how);
    const from = Date.now() + afterEffectsMs;
    let stuck: readonly string[];
    let head: bigint;
    try {
      await pause(afterEffectsMs + seconds * 1_000);
      head = await log.head();
      stuck = await standingBefore(head, () => readUnits(home.db, log));
    } finally {
      await end();
    }
    const to = Date.now();
    const behind = await standingBefore(head, async () => {
      await acceptHeldRebuilds(own.db);
      return readUnits(own.db, log);
    });
    const caughtUpMs = Date.now() - to;
    world.storeOutages.push({ how, from, to, appended: Number(head - before), stuck, behind, caughtUpMs });
    return `${head - before} positions appended, caught up after ${caughtUpMs} ms`;
  }

  /** The process goes on, and all others reach the store. */
  async function cutOff({ place, process }: Running, milliseconds: number): Promise<string> {
    const owned = options.ownership === 'lease' ? await failOvers.ownedBy(process) : [];
    const orphans = owned.filter(({ store }) => store === apart);
    const { proxy } = place.storeNetwork;
    const at = Date.now();
    proxy.swallow();
    const takenOver = failOvers.expect({ cause: 'cut off', at, watched: true, orphans });
    const connected = lasts(milliseconds, () => proxy.resume());
    last(connected);
    await Promise.race([takenOver, connected]);
    return `${process.name} for ${Math.round(milliseconds)} ms`;
  }

  return {
    async perform(fault) {
      switch (fault.kind) {
        case 'restart the store':
          if (fault.how === 'crash') last(lasts(fault.seconds * 1_000, await storeServer.vanish('down')));
          else await storeServer.restart(fault.how);
          return '';
        case 'store away':
          return watchedOutage(fault.how, fault.seconds);
        case 'cut off from the store':
          return withOneOf(world.workers, fault.worker, (running) =>
            cutOff(running, fault.leases * options.leaseSeconds * 1_000),
          );
      }
    },
    heal() {
      healed.abort();
      healed = new AbortController();
    },
  };
}
