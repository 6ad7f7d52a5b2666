import type { Logger } from 'pino';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { copyDiscards } from '../../store/processors/discards.ts';
import { readPositionsLeftOut } from '../../store/processors/left-out.ts';
import type { ReadStores } from '../../store/read-store.ts';
import { endArrival, lockArrivals, recordMove } from '../../store/registry/copies.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { redeliverInherited } from '../dead-letters/redeliver-letters.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { pointView } from '../versions/lifecycle.ts';
import type { StoreVersions } from '../versions/versions.ts';

export interface ArrivalOptions {
  readonly stores: ReadStores;
  /** The store to which versions move. */
  readonly store: string;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  /** Identifies this process in the audit log, for example `host:4711`. */
  readonly owner: string;
}

const lookMilliseconds = 500;

/** Lets versions that move to a store take over as soon as all of them are complete. Every process that maintains the store runs it. */
export function createArrivals(
  options: ArrivalOptions & { readonly versions: StoreVersions; readonly logger: Logger },
): PeriodicTask {
  const { versions, logger } = options;
  const task = startPeriodicTask(lookMilliseconds, look, (error) =>
    logger.warn({ err: error }, `could not let versions take over in another store; trying again. ${String(error)}`),
  );
  const unsubscribe = versions.onChange(() => task.soon());

  async function look(): Promise<void> {
    const arriving = versions.arrivals();
    if (arriving.length === 0 || arriving.some(({ state }) => state !== 'ready')) return;
    for (const id of await arrive(options)) logger.info({ projection: id }, `${id} has moved to '${options.store}'`);
    await versions.refresh();
  }

  return {
    soon: task.soon,
    async stop() {
      unsubscribe();
      await task.stop();
    },
  };
}

type Arrival = Awaited<ReturnType<typeof lockArrivals>>[number];

/**
 * Lets all versions that move to this store take over, in one transaction, if each is complete and has no new dead letters.
 *
 * @param accepted the version whose dead letters an operator accepts, such as `cart_summary@2`
 * @returns the versions that took over: none, or all
 */
export async function arrive(options: ArrivalOptions, accepted?: string): Promise<readonly string[]> {
  const { stores, store, readSchema, projections, owner } = options;
  const { db } = stores.of({ store });
  const sourceOf = (arrival: Arrival): Database => stores.of({ store: String(arrival.arrivingFrom) }).db;
  const arrived = await db.transaction(async (tx) => {
    const arrivals = await lockArrivals(tx);
    if (arrivals.some(({ state }) => state !== 'ready')) return [];
    const complete: { readonly arrival: Arrival; readonly source: RegisteredVersion }[] = [];
    for (const arrival of arrivals) {
      const source = await copyIn(sourceOf(arrival), arrival);
      const own = await copyIn(tx, arrival);
      const projection = projections.find(({ name, version }) => name === arrival.name && version === arrival.version);
      // No client that has seen newer rows must see older ones.
      if (!source || !own || !projection || own.checkpoint < source.checkpoint) return [];
      await copyDiscards(sourceOf(arrival), tx, arrival.name, arrival.version);
      const copy = storedIn(projection, arrival.tableName);
      await redeliverInherited(tx, { log: options.log, readSchema, projection: copy }, 'where discarded');
      const isAccepted = accepted === projection.id || projection.activation.maxNewDeadLetters === Infinity;
      if (!isAccepted && (await holdIfLeftOut(tx, sourceOf(arrival), source, copy, arrival, options))) return [];
      complete.push({ arrival, source });
    }
    for (const { arrival, source } of complete) await takeOver(tx, arrival, source);
    return arrivals;
  });
  for (const arrival of arrived) await recordMove(sourceOf(arrival), arrival, store);
  return arrived.map(({ name, version }) => `${name}@${version}`);

  async function takeOver(tx: Queryable, arrival: Arrival, source: RegisteredVersion): Promise<void> {
    const { name, version } = arrival;
    await endArrival(tx, arrival);
    // It may have been taken out of service meanwhile.
    const state = source.state === 'active' ? 'active' : 'ready';
    const reason = `moved from the store '${arrival.arrivingFrom}' at position ${source.checkpoint}`;
    const step = { actor: owner, reason, heldReason: state === 'active' ? null : source.heldReason };
    await recordTransition(tx, { name, version, from: 'ready', to: state, ...step });
    await pointView(tx, readSchema, name);
  }
}

async function copyIn(
  db: Queryable,
  { name, version }: Pick<Arrival, 'name' | 'version'>,
): Promise<RegisteredVersion | undefined> {
  return (await readRegistry(db)).find((one) => one.name === name && one.version === version);
}

/** Holds a copy that left out events which the present one has, and returns whether it does. */
async function holdIfLeftOut(
  tx: Queryable,
  from: Queryable,
  source: RegisteredVersion,
  { id, name, version, tableName, activation }: Projection,
  { heldReason }: Arrival,
  { owner, store }: ArrivalOptions,
): Promise<boolean> {
  const own = await readPositionsLeftOut(tx, { name, version, tableName });
  const known = own.size === 0 ? own : await readPositionsLeftOut(from, { name, version, tableName: source.tableName });
  const count = [...own].filter((position) => !known.has(position)).length;
  if (count <= activation.maxNewDeadLetters) return false;
  const reason = `${count} dead letters or skipped events that the copy which answers does not have. 'refold rebuild ${id} --store ${store} --accept-dead-letters' lets it take over all the same, 'refold rebuild ${id} --store ${store} --cancel' ends the move.`;
  if (reason === heldReason) return true;
  const held = { heldReason: reason, heldBy: 'dead-letters', actor: owner, reason } as const;
  await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held });
  return true;
}
