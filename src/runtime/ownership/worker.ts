import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { Ownership, OwnershipLock } from '../../store/ownership/ownership.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isOutage, isRefusedForGood } from '../../store/postgres/database-errors.ts';
import {
  claimProcessor,
  forgetCheckpoint,
  type ProcessorClaim,
  recordStop,
  releaseProcessor,
} from '../../store/processors/checkpoints.ts';
import { unitText } from '../../store/server/processor-unit.ts';
import { createConsumer, type Subscription } from '../consumers/consumer.ts';
import type { EventSource } from '../consumers/event-source.ts';
import type { History } from '../consumers/history.ts';
import { lostProcessor } from '../processors/lost-history.ts';
import type { MaintainedProcessor, MaintainedUnit, WorkSource } from '../processors/maintained-unit.ts';
import { stopOf } from '../processors/stopped-processor.ts';
import type { Versions } from '../versions/versions.ts';
import { ownedDatabase } from './owned-database.ts';
import type { ProcessDescription } from './presence.ts';
import { createWorkShares, type Standing } from './work-shares.ts';

export interface WorkerOptions {
  readonly db: Database;
  /** Returns the units to maintain. Processes with equal declarations get equal units. */
  readonly work: WorkSource;
  /** Drops tables that have been unused long enough. */
  dropOldTables(): Promise<void>;
  readonly source: EventSource;
  /** When it changes, everything folded in memory is discarded and folded again from what is stored. */
  readonly history: History;
  readonly pageSize: number;
  readonly bufferedPages: number;
  readonly ownership: Ownership;
  /** The server rolls back a batch of a hanging process after this time, and the next owner can continue. Milliseconds. */
  readonly longestStallMs: number;
  readonly versions: Pick<Versions, 'onChange'>;
  /** Its name is the owner's name in the registry. */
  readonly described: ProcessDescription;
  readonly logger: Logger;
}

/** Keeps the declared versions and reactors of this process current, together with the workers of other processes. */
export interface Worker {
  /** Finishes running batches, writes what is folded and releases all units. */
  stop(): Promise<void>;
}

/** A unit that this process owns. */
interface Owned {
  readonly lock: OwnershipLock;
  readonly claim: ProcessorClaim;
  readonly processor: MaintainedProcessor;
  readonly since: number;
  subscription?: Subscription;
  /** Whether the processor has stopped and needs an operator or other code. */
  stopped: boolean;
}

interface Slot {
  readonly maintained: MaintainedUnit;
  owned: Owned | undefined;
  failures: number;
  retryAt: number;
}

// The interval in which a process notices free units. It bounds the duration of a fail-over, beside the time PostgreSQL needs to notice a lost connection.
const lookForWorkMilliseconds = 500;
const retryAtMost = 30_000;
const retryFenced = 100;
const othersFirst = 5000;

export function createWorker(options: WorkerOptions): Worker {
  const { db, versions, history, ownership, logger } = options;
  const { source, pageSize, bufferedPages } = options;
  const consumer = createConsumer({ source, pageSize, bufferedPages });
  const shares = createWorkShares(db, options.described);
  const slots = new Map<string, Slot>();
  let stopped = false;
  let looking: Promise<void> | undefined;

  async function lookForWork(): Promise<void> {
    const kept = [...slots.values()].filter((slot) => slot.owned?.stopped);
    const { units, oldTables, stopped: stoppedUnits } = await options.work();
    await adjustSlots(units);
    await letOthersRetry(kept.filter(({ maintained: { unit } }) => !stoppedUnits.has(unitText(unit))));
    if (oldTables) await options.dropOldTables();
    const { surplus, take, inherit } = await shares.next(standing());
    await letGo(slotsOf(surplus), () => shares.announce(standing()));
    const claimed: [Slot, Owned][] = [];
    const tryToTake = async (slot: Slot): Promise<boolean> => {
      const owned = stopped || slot.owned ? null : await claim(slot);
      if (owned) claimed.push([slot, owned]);
      return owned !== null;
    };
    for (const slot of slotsOf(take)) await tryToTake(slot);
    for (const { process, units } of inherit) {
      // If the first unit is still locked, the process is alive, and the others need not be tried.
      const [first, ...rest] = slotsOf(units);
      if (!first || !(await tryToTake(first))) continue;
      await shares.declareGone(process);
      for (const slot of rest) await tryToTake(slot);
    }
    // Added together, so processors at nearby positions share one reading of the log.
    const subscriptions = consumer.add(claimed.map(([, { processor }]) => processor));
    for (const [index, [slot, owned]] of claimed.entries()) {
      follow(slot, owned, subscriptions[index] as Subscription); // one for each
    }
    if (claimed.length > 0) await shares.announce(standing());
  }

  /** An operator has requested a retry of units stopped here. Another process may have other code, so it goes first. */
  async function letOthersRetry(some: readonly Slot[]): Promise<void> {
    for (const slot of some) {
      slot.failures++;
      slot.retryAt = Date.now() + othersFirst;
    }
    await letGo(some);
  }

  /** Returns the announcement of this process. It omits units that recently failed here: another process should try them. */
  function standing(): Standing {
    const all = [...slots.values()];
    const owned = all.filter((slot) => slot.owned);
    const able = all.filter((slot) => slot.owned || slot.failures === 0 || Date.now() >= slot.retryAt);
    const texts = (some: readonly Slot[]) => some.map(({ maintained }) => unitText(maintained.unit));
    return { declares: texts(able), owns: texts(owned), keeps: texts(owned.filter((slot) => slot.owned?.stopped)) };
  }

  function slotsOf(units: readonly string[]): Slot[] {
    return [...slots.values()].filter(({ maintained }) => units.includes(unitText(maintained.unit)));
  }

  /** Keeps one slot for each unit to maintain. */
  async function adjustSlots(units: readonly MaintainedUnit[]): Promise<void> {
    const wanted = new Map(units.map((maintained) => [maintained.key, maintained]));
    const over = [...slots].filter(([key]) => !wanted.has(key));
    await letGo(over.map(([, slot]) => slot));
    for (const [key] of over) slots.delete(key);
    for (const [key, maintained] of wanted) {
      if (!slots.has(key)) slots.set(key, { maintained, owned: undefined, failures: 0, retryAt: 0 });
    }
  }

  async function claim(slot: Slot): Promise<Owned | null> {
    const { id, unit } = slot.maintained;
    let lock: OwnershipLock | null = null;
    try {
      if (Date.now() < slot.retryAt) return null;
      lock = await ownership.tryAcquire(unit);
      if (!lock) return null;
      const claim = await claimProcessor(db, unit, options.described.name);
      const processor = claim.lost
        ? await hold(slot, claim)
        : await slot.maintained.start(ownedDatabase(db, lock, options.longestStallMs), claim);
      logger.info(
        { projection: id, kind: unit.kind, checkpoint: claim.checkpoint.toString(), epoch: claim.epoch.toString() },
        `${id}: this process owns its ${unit.kind}`,
      );
      slot.owned = { lock, claim, processor, since: Date.now(), stopped: false };
      return slot.owned;
    } catch (error) {
      await lock?.release().catch(() => {});
      postpone(slot, error);
      return null;
    }
  }

  /** Creates the processor of a unit whose checkpoint belongs to a history that is gone. */
  async function hold({ maintained }: Slot, claim: ProcessorClaim): Promise<MaintainedProcessor> {
    if (claim.kind === 'processor') await forgetCheckpoint(db, claim);
    return lostProcessor(maintained, claim);
  }

  function follow(slot: Slot, owned: Owned, subscription: Subscription): void {
    owned.subscription = subscription;
    const { lost } = owned.lock;
    const onLost = () => void drop(slot, owned, lost.reason);
    lost.addEventListener('abort', onLost, { once: true });
    if (lost.aborted) onLost();
    const { ended } = owned.processor;
    // A processor that ends by itself also ends its page, maybe before it has settled `ended`, which tells why.
    (ended ? Promise.race([subscription.done.then(() => ended), ended]) : subscription.done)
      // A unit that ends, as a rebuild does, may change which units there are.
      .then(() => (owned.processor.failure ? keepStopped(slot, owned, owned.processor.failure) : void look()))
      .catch(async (error: unknown) => {
        const why = await explain(slot, error);
        return isTransient(why) ? drop(slot, owned, why) : keepStopped(slot, owned, why);
      })
      .catch((error: unknown) => drop(slot, owned, error));
  }

  async function explain({ maintained }: Slot, error: unknown): Promise<unknown> {
    if (!(error instanceof RefoldError) || error.code !== 'DATABASE_ERROR') return error;
    return (await maintained.explain?.().catch(() => null)) ?? error;
  }

  /** Keeps the ownership of a stopped processor, so no other process fails at the same event. */
  async function keepStopped({ maintained }: Slot, owned: Owned, error: unknown): Promise<void> {
    const { id } = owned.processor;
    const reason = messageOf(error);
    await db.transaction(async (tx) => {
      await maintained.onStop?.(tx, reason);
      await recordStop(tx, owned.claim, stopOf(error, reason, maintained.codeFingerprint));
    });
    owned.stopped = true;
    logger.error({ projection: id, err: error }, `${id} has stopped; the other projections continue. ${reason}`);
  }

  async function drop(slot: Slot, owned: Owned, error: unknown): Promise<void> {
    if (slot.owned !== owned) return;
    slot.owned = undefined;
    // A unit that ran well for a while starts its backoff again.
    if (Date.now() - owned.since > retryAtMost) slot.failures = 0;
    await owned.processor.interrupt?.(error);
    await owned.subscription?.remove();
    await owned.lock.release().catch(() => {});
    postpone(slot, error);
  }

  function postpone(slot: Slot, error: unknown): void {
    if (stopped) return;
    // A rebuild or a retry of dead letters changed the rows, so the processor starts again from them.
    if (error instanceof RefoldError && error.code === 'PROCESSOR_FENCED') {
      slot.retryAt = Date.now() + retryFenced;
      const message = `${slot.maintained.id}: trying again in ${retryFenced} ms. ${messageOf(error)}`;
      // An inline version that joined the appends is no problem.
      const level = error.fields.mode === 'inline' ? 'debug' : 'warn';
      logger[level]({ projection: slot.maintained.id, err: error }, message);
      return;
    }
    slot.failures++;
    const delay = Math.min(retryAtMost, 100 * 2 ** slot.failures) * (0.5 + Math.random() / 2);
    slot.retryAt = Date.now() + delay;
    logger.warn(
      { projection: slot.maintained.id, err: error },
      `${slot.maintained.id}: trying again in ${Math.round(delay)} ms. ${messageOf(error)}`,
    );
  }

  /** Releases units in order: write what is folded, announce, then release the locks. */
  async function letGo(some: readonly Slot[], announce?: () => Promise<void>): Promise<void> {
    const leaving = some.flatMap((slot) => (slot.owned ? [slot.owned] : []));
    for (const slot of some) slot.owned = undefined;
    if (leaving.length === 0) return;
    await Promise.all(leaving.map(settle));
    await announce?.().catch((error: unknown) =>
      logger.debug({ err: error }, 'could not announce released units; other processes will find them by probing'),
    );
    for (const { lock } of leaving) await lock.release().catch(() => {});
  }

  async function settle({ claim, processor, subscription }: Owned): Promise<void> {
    void processor.interrupt?.();
    await subscription?.remove();
    if (!processor.failure)
      await processor
        .flush()
        .catch((error: unknown) =>
          logger.debug({ err: error }, 'could not write folded rows; the next owner folds them again'),
        );
    await releaseProcessor(db, claim).catch(() => {});
  }

  function interruptAll(): void {
    for (const { owned } of slots.values()) void owned?.processor.interrupt?.();
  }

  const look = (): Promise<void> => {
    if (stopped) return Promise.resolve();
    looking ??= lookForWork()
      .catch((error: unknown) =>
        logger.warn({ err: error }, `could not look for work; trying again: ${messageOf(error)}`),
      )
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };
  const timer = setInterval(look, lookForWorkMilliseconds);
  const unsubscribe = versions.onChange(() => void look());
  const forget = history.onChange(() => {
    for (const slot of slots.values()) if (slot.owned) void drop(slot, slot.owned, givenUp(slot));
  });
  void look();

  return {
    async stop() {
      stopped = true;
      clearInterval(timer);
      unsubscribe();
      forget();
      // Interrupt all units at once: nothing new starts, and the waits for running work overlap.
      interruptAll();
      await looking;
      // Interrupt also the units claimed meanwhile.
      interruptAll();
      await consumer.stop();
      await letGo([...slots.values()], shares.leave);
      // Also if no unit was owned. If the database does not get this, the announcement expires by itself.
      await shares.leave().catch(() => {});
    },
  };
}

/** The error for discarding folded rows: their events may be gone. The next owner, perhaps this process, continues from what is stored. */
function givenUp({ maintained }: Slot): RefoldError<'PROCESSOR_FENCED'> {
  const { name, version } = maintained.unit;
  const message = `${maintained.id}: the database server was started again, or its history has changed.`;
  return new RefoldError('PROCESSOR_FENCED', message, { name, version });
}

/** Whether the same batch may succeed later. It can't if PostgreSQL refuses its values or the statement, or if code failed. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof RefoldError)) return false;
  if (error.code === 'DATABASE_ERROR') return !isRefusedForGood(error);
  return error.code === 'PROCESSOR_FENCED' || error.code === 'HISTORY_CHANGED' || isOutage(error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
