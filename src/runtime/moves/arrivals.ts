import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { copyDiscards } from '../../store/processors/discards.ts';
import { readPositionsLeftOut } from '../../store/processors/left-out.ts';
import type { ReadStores } from '../../store/read-store.ts';
import { endArrival, lockArrivals, recordArrival } from '../../store/registry/copies.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf } from '../../thrown.ts';
import { redeliverInherited } from '../dead-letters/redeliver-letters.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { pointViews } from '../versions/version-tables.ts';
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
    logger.warn({ err: error }, `could not let versions take over in another store; trying again. ${reasonOf(error)}`),
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

type StoreOf = Pick<RegisteredVersion, 'arrivingFrom'>;
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
  const sourceOf = (arrival: StoreOf): Database => stores.of({ store: String(arrival.arrivingFrom) }).db;
  if (!(await areLevel(db, sourceOf))) return [];
  const arrived = await db.transaction(async (tx) => {
    const arrivals = await lockArrivals(tx);
    if (arrivals.some(({ state }) => state !== 'ready')) return [];
    const complete: { readonly arrival: Arrival; readonly source: RegisteredVersion }[] = [];
    for (const arrival of arrivals) {
      const source = await copyIn(sourceOf(arrival), arrival);
      const projection = projections.find(({ name, version }) => name === arrival.name && version === arrival.version);
      if (!source || !projection) return [];
      await copyDiscards(sourceOf(arrival), tx, arrival.name, arrival.version);
      const copy = storedIn(projection, arrival.tableName);
      await redeliverInherited(tx, { log: options.log, readSchema, projection: copy }, 'where discarded');
      const isAccepted = accepted === projection.id || projection.activation.maxNewDeadLetters === Infinity;
      if (!isAccepted && (await holdIfLeftOut(tx, sourceOf(arrival), source, copy, arrival, options))) return [];
      complete.push({ arrival, source });
    }
    for (const { arrival, source } of complete) await takeOver(tx, arrival, source);
    await pointViews(tx, readSchema, [...new Set(arrivals.map(({ name }) => name))]);
    return arrivals;
  });
  for (const arrival of arrived) await recordArrival(sourceOf(arrival), arrival, store);
  return arrived.map(({ name, version }) => `${name}@${version}`);

  async function takeOver(tx: Queryable, arrival: Arrival, source: RegisteredVersion): Promise<void> {
    const { name, version } = arrival;
    await endArrival(tx, arrival);
    // It may have been taken out of service meanwhile.
    const state = source.state === 'active' ? 'active' : 'ready';
    const reason = `moved from the store '${arrival.arrivingFrom}' at position ${source.checkpoint}`;
    const step = { actor: owner, reason, heldReason: state === 'active' ? null : source.heldReason };
    await recordTransition(tx, { name, version, from: 'ready', to: state, ...step });
  }
}

// In milliseconds. A copy that is complete follows the log as closely as the present one.
const betweenPolls = 20;
const longestWait = 2_000;

/** Waits, for a bounded time, until each copy is where the present one was, as closely as possible to the moment of the switch. */
async function areLevel(db: Database, sourceOf: (arrival: StoreOf) => Database): Promise<boolean> {
  const arriving = (await readRegistry(db)).filter(({ arrivingFrom, state }) => arrivingFrom && state !== 'retired');
  const goals = new Map<string, bigint>();
  for (const copy of arriving)
    goals.set(`${copy.name}@${copy.version}`, (await copyIn(sourceOf(copy), copy))?.checkpoint ?? 0n);
  const until = performance.now() + longestWait;
  while (performance.now() < until) {
    const behind = (await readRegistry(db)).filter(
      ({ name, version, checkpoint }) => checkpoint < (goals.get(`${name}@${version}`) ?? 0n),
    );
    if (behind.length === 0) return true;
    await pause(betweenPolls);
  }
  return false;
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
