import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { lastingFilter } from '../../events/event-names.ts';
import type { Ownership, OwnershipLock } from '../../store/ownership/ownership.ts';
import type { KnownVersions, OtherProcess } from '../../store/ownership/processes.ts';
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
import { reasonOf, withoutTraps } from '../../thrown.ts';
import type { LogSubscription } from '../consumers/consumer.ts';
import { lostProcessor } from '../processors/lost-history.ts';
import type { MaintainedProcessor, MaintainedUnit } from '../processors/maintained-unit.ts';
import { stopOf } from '../processors/stopped-processor.ts';
import {
  isKnownElsewhere,
  isReadBetter,
  isUnknownVersion,
  knownNowhere,
  type ReadUnit,
  type UnknownVersion,
} from './able-readers.ts';
import { fencedDatabase } from './fenced-database.ts';

export interface ClaimOptions {
  readonly db: Database;
  readonly ownership: Ownership;
  /** The owner's name in the registry. */
  readonly owner: string;
  /** The server rolls back a batch of a hanging process after this time, and the next owner can continue. Milliseconds. */
  readonly longestStallMs: number;
  readonly logger: Logger;
  /** Once it aborts, a unit that is lost is not tried again. */
  readonly stopping: AbortSignal;
  /** Called when a unit has done all its work, as a rebuild does: this may change which units there are. */
  onFinished(): void;
  /** Returns the other processes that maintain units, as they announced themselves. */
  others(): Promise<readonly OtherProcess[]>;
  /** The families that this process declares. */
  readonly families: readonly EventFamily[];
  /** The versions of payloads and reactors that this process knows. */
  readonly known: KnownVersions;
}

/** A unit that this process has claimed, and has not begun to process. */
export interface ClaimedUnit {
  readonly lock: OwnershipLock;
  readonly claim: ProcessorClaim;
}

/** A unit while this process owns it. */
interface Owned extends ClaimedUnit {
  readonly processor: MaintainedProcessor;
  readonly since: number;
  subscription?: LogSubscription;
  /** Whether the processor has stopped and needs an operator or other code. */
  stopped: boolean;
}

const retryAtMost = 30_000;
const retryFenced = 100;
const othersFirst = 5000;

/** A unit that this process declares: owned by it now, or to be tried again after a pause. */
export class ClaimableUnit {
  readonly #options: ClaimOptions;
  readonly #maintained: MaintainedUnit;
  /** In the form of `unitText`. */
  readonly name: string;
  readonly #reads: ReadUnit;
  #owned: Owned | undefined;
  #failures = 0;
  #retryAt = 0;
  /** Whether another process can read more of its events, by the last announcements. */
  #isLeft = false;
  /** Why it stopped, if it was a version that no process knew. */
  #unread: UnknownVersion | undefined;

  constructor(options: ClaimOptions, maintained: MaintainedUnit) {
    this.#options = options;
    this.#maintained = maintained;
    this.name = unitText(maintained.unit);
    this.#reads = { unit: maintained.unit, filter: lastingFilter(options.families, maintained.filter) };
  }

  get isOwned(): boolean {
    return this.#owned !== undefined;
  }

  /** Whether this process owns it, and its processor has stopped. */
  get isStopped(): boolean {
    return this.#owned?.stopped === true;
  }

  /** False if it recently failed here, or if another process can read more of its events. */
  get isAble(): boolean {
    return !this.#isLeft && (this.isOwned || this.#failures === 0 || performance.now() >= this.#retryAt);
  }

  /** Whether this process leaves the unit to one of the others, because that one can read events that this one can't. */
  isLeftTo(others: readonly OtherProcess[]): boolean {
    const { families, known } = this.#options;
    this.#isLeft = isReadBetter(this.#reads, known, others);
    if (this.#isLeft) return true;
    if (!this.isStopped || !this.#unread || !isKnownElsewhere(this.#reads.unit, this.#unread, families, others))
      return false;
    this.letOthersRetry();
    return true;
  }

  /** Returns the lock of the unit; null if it is not free or must wait. Try units together that are tried at one moment: they share a statement. */
  async tryLock(): Promise<OwnershipLock | null> {
    if (this.#options.stopping.aborted || this.isOwned || performance.now() < this.#retryAt) return null;
    try {
      return await this.#options.ownership.tryAcquire(this.#maintained.unit);
    } catch (error) {
      return this.#giveUp(null, error);
    }
  }

  /** Makes this process, which has its lock, the owner. Returns null if that fails. */
  async claim(lock: OwnershipLock): Promise<ClaimedUnit | null> {
    const { db, owner, stopping } = this.#options;
    try {
      stopping.throwIfAborted();
      lock.verify();
      return { lock, claim: await claimProcessor(db, this.#maintained.unit, owner) };
    } catch (error) {
      return this.#giveUp(lock, error);
    }
  }

  /**
   * Creates the processor of a claimed unit; null if that fails. Begin units together that were claimed together: what each reads of its
   * version is then read once for all.
   */
  async begin({ lock, claim }: ClaimedUnit): Promise<MaintainedProcessor | null> {
    const { db, longestStallMs, logger } = this.#options;
    const { id, unit } = this.#maintained;
    try {
      const processor = claim.lost
        ? await this.#hold(claim)
        : await this.#maintained.start(fencedDatabase(db, lock, longestStallMs), claim);
      logger.info(
        { projection: id, kind: unit.kind, checkpoint: claim.checkpoint.toString(), epoch: claim.epoch.toString() },
        `${id}: this process owns its ${unit.kind}, and continues after position ${claim.checkpoint}`,
      );
      this.#unread = undefined;
      this.#owned = { lock, claim, processor, since: performance.now(), stopped: false };
      return processor;
    } catch (error) {
      return this.#giveUp(lock, error);
    }
  }

  async #giveUp(lock: OwnershipLock | null, error: unknown): Promise<null> {
    await lock?.release().catch(() => {});
    this.#postpone(error);
    return null;
  }

  /** Follows the processor of a claim until it ends. */
  follow(subscription: LogSubscription): void {
    const owned = this.#owned;
    if (!owned) return void subscription.remove();
    owned.subscription = subscription;
    const { lost } = owned.lock;
    const onLost = () => void this.#drop(owned, lost.reason);
    lost.addEventListener('abort', onLost, { once: true });
    if (lost.aborted) onLost();
    const { ended } = owned.processor;
    // A processor that ends by itself takes no more pages, which may be noticed before the reason is known.
    (ended ? Promise.race([subscription.done.then(() => ended), ended]) : subscription.done)
      .then(() => (owned.processor.failure ? this.#end(owned, owned.processor.failure) : this.#options.onFinished()))
      .catch(async (error: unknown) => {
        const why = await this.#explain(withoutTraps(error));
        return isTransient(why) ? this.#drop(owned, why) : this.#end(owned, why);
      })
      .catch((error: unknown) => this.#drop(owned, error));
  }

  /** An operator has requested a retry. Another process may have other code, so it goes first. */
  letOthersRetry(): void {
    this.#failures++;
    this.#retryAt = performance.now() + othersFirst;
  }

  /** Discards folded rows: `why` they may be wrong. The next owner, perhaps this process, continues from what is stored. */
  discard(why: string): void {
    const { id, unit } = this.#maintained;
    const error = new RefoldError('PROCESSOR_FENCED', `${id}: ${why}.`, { name: unit.name, version: unit.version });
    if (this.#owned) void this.#drop(this.#owned, error);
  }

  /** Begins the end of running work. */
  interrupt(): void {
    void this.#owned?.processor.interrupt?.();
  }

  /**
   * Writes what is folded. From now on this process does not own the unit.
   *
   * @returns how to release its lock; undefined if the unit was not owned.
   */
  settle(): Promise<() => Promise<void>> | undefined {
    const owned = this.#owned;
    this.#owned = undefined;
    return owned && this.#settle(owned);
  }

  async #settle({ lock, claim, processor, subscription }: Owned): Promise<() => Promise<void>> {
    const { db, logger } = this.#options;
    void processor.interrupt?.();
    await subscription?.remove();
    if (!processor.failure)
      await processor
        .flush()
        .catch((error: unknown) =>
          logger.debug({ err: error }, 'could not write folded rows; the next owner folds them again'),
        );
    await releaseProcessor(db, claim).catch(() => {});
    return () => lock.release().catch(() => {});
  }

  /** Creates the processor of a unit whose checkpoint belongs to a history that is gone. */
  async #hold(claim: ProcessorClaim): Promise<MaintainedProcessor> {
    if (claim.kind === 'processor') await forgetCheckpoint(this.#options.db, claim);
    return lostProcessor(this.#maintained, claim);
  }

  async #explain(error: unknown): Promise<unknown> {
    if (!(error instanceof RefoldError) || error.code !== 'DATABASE_ERROR') return error;
    return (await this.#maintained.explain?.().catch(() => null)) ?? error;
  }

  /** Leaves the unit to a process that can read its next event, or keeps it stopped. */
  async #end(owned: Owned, why: unknown): Promise<void> {
    if (!isUnknownVersion(why)) return this.#keepStopped(owned, why);
    const { families, others } = this.#options;
    const { id, unit } = this.#maintained;
    if (isKnownElsewhere(unit, why, families, await others())) return this.#drop(owned, why);
    this.#unread = why;
    return this.#keepStopped(owned, knownNowhere(id, why));
  }

  /** Keeps the ownership of a stopped processor, so no other process fails at the same event. */
  async #keepStopped(owned: Owned, error: unknown): Promise<void> {
    const { db, logger } = this.#options;
    const { id } = owned.processor;
    const reason = reasonOf(error);
    await db.transaction(async (tx) => {
      await this.#maintained.onStop?.(tx, reason);
      await recordStop(tx, owned.claim, stopOf(error, reason, this.#maintained.codeFingerprint));
    });
    owned.stopped = true;
    logger.error({ projection: id, err: error }, `${id} has stopped; the other projections continue. ${reason}`);
  }

  async #drop(owned: Owned, error: unknown): Promise<void> {
    if (this.#owned !== owned) return;
    this.#owned = undefined;
    // A unit that ran well for a while starts its backoff again.
    if (performance.now() - owned.since > retryAtMost) this.#failures = 0;
    await owned.processor.interrupt?.(error);
    await owned.subscription?.remove();
    await owned.lock.release().catch(() => {});
    this.#postpone(error);
  }

  #postpone(error: unknown): void {
    const { stopping, logger } = this.#options;
    if (stopping.aborted) return;
    const { id } = this.#maintained;
    // A rebuild or a retry of dead letters changed the rows, so the processor starts again from them.
    const fenced = error instanceof RefoldError && error.code === 'PROCESSOR_FENCED';
    if (!fenced) this.#failures++;
    const leaves = isUnknownVersion(error);
    const backoff = Math.min(retryAtMost, 100 * 2 ** this.#failures) * (0.5 + Math.random() / 2);
    const delay = leaves ? othersFirst : fenced ? retryFenced : backoff;
    this.#retryAt = performance.now() + delay;
    // A version that joined the appends or was paused is no problem, nor is an event that another process can read.
    const level = fenced && error.fields.mode !== undefined ? 'debug' : leaves ? 'info' : 'warn';
    const next = leaves ? 'left to a process that knows it' : `trying again in ${Math.round(delay)} ms`;
    logger[level]({ projection: id, err: error }, `${id}: ${next}. ${reasonOf(error)}`);
  }
}

/** Whether the same batch may succeed later. It can't if PostgreSQL refuses its values or the statement, or if code failed. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof RefoldError)) return false;
  if (error.code === 'DATABASE_ERROR') return !isRefusedForGood(error);
  return error.code === 'PROCESSOR_FENCED' || error.code === 'HISTORY_CHANGED' || isOutage(error);
}
