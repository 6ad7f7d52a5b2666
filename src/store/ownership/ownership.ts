import type { ProcessorUnit } from '../server/processor-unit.ts';

/** The exclusive right to process a unit. */
export interface OwnershipLock {
  /** Aborted with an error that contains the reason when ownership is lost. From then on another process may own the unit. */
  readonly lost: AbortSignal;
  /**
   * Checks now, even if timers have not run yet: a process that stalled must not continue as the owner.
   *
   * @throws RefoldError `PROCESSOR_FENCED` if ownership is lost.
   */
  verify(): void;
  release(): Promise<void>;
}

/**
 * Decides which process owns a unit. Correctness does not depend on it: every batch is fenced by its owner's epoch, and two processes that
 * both believe to be the owner cannot both write.
 */
export interface Ownership {
  /** Returns the lock, or null if another process holds it. Never waits. */
  tryAcquire(unit: ProcessorUnit): Promise<OwnershipLock | null>;
  /** Releases everything. */
  close(): Promise<void>;
}
