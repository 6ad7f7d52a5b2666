import type { Logger } from 'pino';
import { RefoldError } from '../errors.ts';
import { type Projection, storedIn } from '../projections/projection.ts';
import {
  claimProcessor,
  type ProcessorClaim,
  type ProcessorKind,
  recordStop,
  releaseProcessor,
} from '../store/checkpoints.ts';
import type { Database } from '../store/database.ts';
import type { EventLog } from '../store/event-log.ts';
import { dropOldTables } from '../store/old-tables.ts';
import type { Ownership, OwnershipLock } from '../store/ownership.ts';
import { readRebuilds } from '../store/rebuilds.ts';
import { createConsumer, type Subscription } from './consumer.ts';
import type { EventSource } from './event-source.ts';
import type { Lifecycle } from './lifecycle.ts';
import { ownedDatabase } from './owned-database.ts';
import { type BuildProgress, createProjectionProcessor, type ProjectionProcessor } from './projection-processor.ts';
import { completeRebuild } from './rebuild.ts';
import type { Versions } from './versions.ts';

export interface WorkerOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly source: EventSource;
  readonly log: EventLog;
  readonly pageSize: number;
  readonly ownership: Ownership;
  /** A batch of a process that hangs is rolled back after this long, so that the next owner can go on. Milliseconds. */
  readonly longestStallMs: number;
  readonly versions: Versions;
  readonly lifecycle: Lifecycle;
  /** Names this process in the registry, such as `host:4711`. */
  readonly owner: string;
  readonly freeze: boolean;
  readonly logger: Logger;
}

/** Keeps the read tables of the declared versions true, together with the workers of other processes. */
export interface Worker {
  /** Finishes the batches in work, writes what is folded and lets go of everything owned. */
  stop(): Promise<void>;
}

/** A processor that this process owns. */
interface Owned {
  readonly lock: OwnershipLock;
  readonly claim: ProcessorClaim;
  readonly processor: ProjectionProcessor;
  readonly since: number;
  subscription?: Subscription;
}

interface Slot {
  readonly kind: ProcessorKind;
  /** As declared; of a rebuild, with the table that it fills. */
  readonly projection: Projection;
  owned: Owned | undefined;
  failures: number;
  retryAt: number;
}

// How soon a process notices that another one's processor is free: the bound of a fail-over, beside what PostgreSQL needs to see a connection end.
const lookForWorkMilliseconds = 500;
const retryAtMost = 30_000;
const retryFenced = 100;

export function createWorker(options: WorkerOptions): Worker {
  const { db, versions, ownership, logger } = options;
  const consumer = createConsumer({ source: options.source, pageSize: options.pageSize });
  const newSlot = (kind: ProcessorKind, projection: Projection): Slot => ({
    kind,
    projection,
    owned: undefined,
    failures: 0,
    retryAt: 0,
  });
  const slots = new Set(options.projections.map((projection) => newSlot('processor', projection)));
  let stopped = false;
  let looking: Promise<void> | undefined;

  async function lookForWork(): Promise<void> {
    for (const slot of slots) if (slot.owned && !maintained(slot)) await letGo(slot);
    await lookForRebuilds();
    await dropOldTables(db);
    const claimed: Owned[] = [];
    for (const slot of slots) {
      if (stopped || slot.owned || !maintained(slot) || Date.now() < slot.retryAt) continue;
      try {
        const owned = await take(slot);
        if (owned) claimed.push(owned);
      } catch (error) {
        postpone(slot, error);
      }
    }
    // Added together, so that those near each other share one reading of the log.
    const subscriptions = consumer.add(claimed.map((owned) => owned.processor));
    for (const [index, owned] of claimed.entries()) {
      owned.subscription = subscriptions[index] as Subscription; // one for each
      follow(owned);
    }
  }

  /** A slot for each rebuild of a declared version, for as long as it is asked for. */
  async function lookForRebuilds(): Promise<void> {
    const wanted = await readRebuilds(db);
    for (const slot of slots) {
      if (slot.kind !== 'rebuild' || wanted.some(({ tableName }) => tableName === slot.projection.tableName)) continue;
      await letGo(slot);
      slots.delete(slot);
    }
    for (const { name, version, tableName } of wanted) {
      const declared = options.projections.find(
        (projection) => projection.name === name && projection.version === version,
      );
      if (!declared || [...slots].some(({ projection }) => projection.tableName === tableName)) continue;
      slots.add(newSlot('rebuild', storedIn(declared, tableName)));
    }
  }

  function maintained({ projection }: Slot): boolean {
    const state = versions.stateOf(projection.name, projection.version);
    return state === 'building' || state === 'ready' || state === 'active';
  }

  async function take(slot: Slot): Promise<Owned | null> {
    const { kind, projection } = slot;
    const { name, version, id } = projection;
    const lock = await ownership.tryAcquire(kind, name, version);
    if (!lock) return null;
    try {
      const claim = await claimProcessor(db, kind, name, version, options.owner);
      // After the claim: a rebuild that ends now raises the epoch again, and this claim writes to no table.
      await versions.refresh();
      const owned = ownedDatabase(db, lock, options.longestStallMs);
      const processor = createProjectionProcessor({
        db: owned,
        claim,
        readSchema: options.readSchema,
        projection: kind === 'rebuild' ? projection : versions.stored(projection),
        state: kind === 'rebuild' ? 'building' : (versions.stateOf(name, version) ?? 'building'),
        freeze: options.freeze,
        onCaughtUp: (progress) => caughtUp(owned, slot, claim, progress),
      });
      logger.info(
        { projection: id, kind, checkpoint: claim.checkpoint.toString(), epoch: claim.epoch.toString() },
        `${id}: this process owns its ${kind}`,
      );
      slot.owned = { lock, claim, processor, since: Date.now() };
      return slot.owned;
    } catch (error) {
      await lock.release().catch(() => {});
      throw error;
    }
  }

  async function caughtUp(owned: Database, { kind, projection }: Slot, claim: ProcessorClaim, progress: BuildProgress) {
    const { id } = projection;
    if (kind === 'rebuild') {
      await completeRebuild({ ...options, db: owned, projection, claim, progress, actor: options.owner });
      logger.info({ projection: id }, `${id} is rebuilt`);
      void look();
      return 'over' as const;
    }
    const state = await options.lifecycle.caughtUp(projection, options.owner);
    logger.info(
      { projection: id, checkpoint: progress.checkpoint.toString(), state },
      `${id} has caught up and is ${state}`,
    );
    return state;
  }

  function follow(owned: Owned): void {
    const slot = [...slots].find((candidate) => candidate.owned === owned);
    const subscription = owned.subscription;
    if (!slot || !subscription) return;
    const { lost } = owned.lock;
    const onLost = () => void drop(slot, owned, lost.reason);
    lost.addEventListener('abort', onLost, { once: true });
    if (lost.aborted) onLost();
    subscription.done
      .then(() => (owned.processor.failure ? keepStopped(owned, owned.processor.failure) : undefined))
      .catch((error: unknown) => (isTransient(error) ? drop(slot, owned, error) : keepStopped(owned, error)))
      .catch((error: unknown) => drop(slot, owned, error));
  }

  /** The owner keeps a processor that can't go on, so that no other process fails at the same event. */
  async function keepStopped(owned: Owned, error: unknown): Promise<void> {
    const { id } = owned.processor;
    logger.error({ projection: id, err: error }, `${id} has stopped; the other projections go on. ${messageOf(error)}`);
    await recordStop(db, owned.claim, {
      message: messageOf(error),
      code: error instanceof RefoldError ? error.code : undefined,
      position: error instanceof RefoldError ? error.fields.position : undefined,
      at: new Date().toISOString(),
    });
  }

  async function drop(slot: Slot, owned: Owned, error: unknown): Promise<void> {
    if (slot.owned !== owned) return;
    slot.owned = undefined;
    // What has run well for a while starts its back-off anew.
    if (Date.now() - owned.since > retryAtMost) slot.failures = 0;
    await owned.subscription?.remove();
    await owned.lock.release().catch(() => {});
    postpone(slot, error);
  }

  function postpone(slot: Slot, error: unknown): void {
    if (stopped) return;
    // A rebuild or a retry of dead letters has changed the rows beside the processor; it goes on from them.
    if (error instanceof RefoldError && error.code === 'PROCESSOR_FENCED') {
      slot.retryAt = Date.now() + retryFenced;
      const message = `${slot.projection.id}: trying again in ${retryFenced} ms. ${messageOf(error)}`;
      logger.warn({ projection: slot.projection.id, err: error }, message);
      return;
    }
    slot.failures++;
    const delay = Math.min(retryAtMost, 100 * 2 ** slot.failures) * (0.5 + Math.random() / 2);
    slot.retryAt = Date.now() + delay;
    logger.warn(
      { projection: slot.projection.id, err: error },
      `${slot.projection.id}: trying again in ${Math.round(delay)} ms. ${messageOf(error)}`,
    );
  }

  async function letGo(slot: Slot): Promise<void> {
    const { owned } = slot;
    if (!owned) return;
    slot.owned = undefined;
    await owned.subscription?.remove();
    if (!owned.processor.failure)
      await owned.processor
        .flush()
        .catch((error: unknown) => logger.debug({ err: error }, 'what was folded is folded again by the next owner'));
    await releaseProcessor(db, owned.claim).catch(() => {});
    await owned.lock.release().catch(() => {});
  }

  const look = () => {
    looking ??= lookForWork()
      .catch((error: unknown) => logger.warn({ err: error }, `looking for work failed: ${messageOf(error)}`))
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };
  const timer = setInterval(look, lookForWorkMilliseconds);
  const unsubscribe = versions.onChange(() => void look());
  void look();

  return {
    async stop() {
      stopped = true;
      clearInterval(timer);
      unsubscribe();
      await looking;
      await consumer.stop();
      for (const slot of slots) await letGo(slot);
    },
  };
}

/** Whether the same batch may succeed later: not where PostgreSQL refuses the values themselves (classes 22 and 23), nor where code failed. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof RefoldError)) return false;
  if (error.code === 'DATABASE_ERROR') return !/^2[23]/.test(String(error.fields.sqlState));
  return error.code === 'PROCESSOR_FENCED' || error.code === 'DATABASE_UNREACHABLE';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
