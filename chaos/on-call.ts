import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../src/errors.ts';
import { acceptRebuild, cancelRebuild, requestRebuild } from '../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../src/runtime/rebuilds/rebuild-in-place.ts';
import type { EventLog } from '../src/store/event-log.ts';
import type { Database } from '../src/store/postgres/database.ts';
import { readRebuilds } from '../src/store/registry/rebuilds.ts';
import { readRegistry } from '../src/store/registry/registry.ts';
import { inItsStore } from './apart.ts';
import { projectionOf } from './domain.ts';
import type { Ledger } from './ledger.ts';
import { isAway } from './traffic.ts';

const lookMs = 500;
const readSchema = 'read_models';
const by = { actor: 'chaos', reason: 'its rows are of events that the log has lost' };

export interface OnCallOptions {
  readonly store: Database;
  readonly log: EventLog;
  readonly ledger: Pick<Ledger, 'cuts'>;
  readonly incidents: string[];
}

/**
 * The operator who does what a held version asks for. The store keeps the rows of events that the log has lost; so its versions stop after a lost
 * tail, until they are rebuilt. Before a tail is lost, nobody helps.
 */
export function startOnCall({ store, log, ledger, incidents }: OnCallOptions) {
  const stopping = new AbortController();

  /** Another operator may have done it meanwhile, and a fault may prevent it: the next look finds what is left. */
  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (isAway(error) || (error instanceof RefoldError && error.code === 'INVALID_TRANSITION')) return;
      incidents.push(error instanceof Error ? String(error.stack) : String(error));
    }
  }

  async function rebuildLost(): Promise<void> {
    const rebuilds = await readRebuilds(store);
    for (const { name, version, error } of rebuilds)
      if (error?.code === 'HISTORY_CHANGED') await attempt(() => cancelRebuild(store, name, version, readSchema, by));
    for (const { name, version, state, error } of await readRegistry(store)) {
      if (error?.code !== 'HISTORY_CHANGED' || state === 'retired') continue;
      const held = rebuilds.find((one) => one.name === name && one.version === version)?.heldReason;
      if (held) await attempt(() => acceptRebuild(store, name, version, { ...by, reason: held }));
      const projection = inItsStore(projectionOf(name, version));
      await attempt(() =>
        state === 'failed'
          ? rebuildInPlace({ db: store, log, readSchema, projection }, by)
          : requestRebuild(store, projection, readSchema, by),
      );
    }
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (ledger.cuts.length > 0) await attempt(rebuildLost);
      await pause(lookMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  const watching = watch();
  return {
    async stop(): Promise<void> {
      stopping.abort();
      await watching;
    },
  };
}
