import type { ProcessorUnit } from '../server/processor-unit.ts';

/** The right to be the one live owner of a unit. */
export interface OwnershipLock {
  /** Aborts, with an error that says why, when the right is lost: somebody else may own the processor from then on. */
  readonly lost: AbortSignal;
  /**
   * Looks at this moment, whatever timers have not run yet: a process that was stalled must not go on as the owner.
   *
   * @throws RefoldError `PROCESSOR_FENCED` where the right is lost.
   */
  verify(): void;
  release(): Promise<void>;
}

/**
 * Decides which process owns a unit. The decision is a matter of good order, not of safety: every batch is fenced by the
 * epoch of its owner, so that two who both take themselves for the owner can't both write.
 */
export interface Ownership {
  /** The lock, or null where another process holds it. Never waits for it. */
  tryAcquire(unit: ProcessorUnit): Promise<OwnershipLock | null>;
  /** Gives back everything that is held. */
  close(): Promise<void>;
}
