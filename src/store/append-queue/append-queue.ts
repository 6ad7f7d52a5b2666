import type { AppendLock } from '../log/append-locks.ts';
import type { CheckedAppend } from '../log/append-request.ts';
import type { AppendOutcome } from '../log/append-statement.ts';
import { isOutage, sqlStateOf } from '../postgres/database-errors.ts';
import { createHeldAppends, type HeldAppendsOptions, joinedLockMs } from './held-appends.ts';
import type { StalledCommits } from './stalled-commits.ts';
import { fitting, isUnchecked, type Waiting } from './waiting-appends.ts';

export interface AppendQueueOptions {
  /** The maximum of appends in one statement. @default 256 */
  readonly maxBatch?: number;
  /** The maximum of concurrent statements. More of them make batches smaller. @default 2 */
  readonly maxInFlight?: number;
  /** How long an append waits in total for what other transactions have locked, in milliseconds. @default 5000 */
  readonly lockTimeoutMs?: number;
  /** Runs a statement, see {@link StalledCommits}. @default it waits while commits stall */
  readonly unlessStalled?: StalledCommits['run'];
  /** How many connections wait for locks, besides those of `maxInFlight`. @default 2 */
  readonly maxWaiting?: number;
}

/**
 * Batches concurrent appends of many callers. While statements are in flight, new appends are queued. When a statement finishes, the queue
 * is sent as one statement with one commit. Each caller gets its own outcome.
 *
 * What another transaction holds delays a statement once, and for a moment: from then on, the appends that need it wait apart.
 */
export interface AppendQueue {
  append(checked: CheckedAppend): Promise<AppendOutcome>;
}

/** Sends a batch and returns the outcome of each append. If it throws, all appends failed and nothing was written. */
export type SendAppends = (batch: readonly CheckedAppend[], lockTimeoutMs: number) => Promise<AppendOutcome[]>;

export interface AppendLocks extends Pick<HeldAppendsOptions, 'readHeld'> {
  /** All locks that an append takes, in the order in which it waits for them. */
  locksOf(one: CheckedAppend): readonly AppendLock[];
}

export function createAppendQueue(
  sendBatch: SendAppends,
  { locksOf, readHeld }: AppendLocks,
  options: AppendQueueOptions = {},
): AppendQueue {
  const { maxBatch = 256, maxInFlight = 2, maxWaiting = 2, lockTimeoutMs = 5000 } = options;
  const shortly = Math.min(joinedLockMs, lockTimeoutMs);
  let waiting: Waiting[] = [];
  let count = 0;
  let inFlight = 0;
  let scheduled = false;
  const held = createHeldAppends({
    locksOf: (one) => (one.locks ??= locksOf(one.checked)),
    readHeld,
    settle: (group, lockMs, onLocked) => settle(group, { lockMs, onLocked }),
    goOn(appends) {
      waiting = [...appends, ...waiting];
      sendSoon();
    },
    lockTimeoutMs,
    maxBatch,
    maxWaiting,
  });

  // Not at once: a caller that receives an outcome may append again in the same turn, and so may others. If the first append were sent at
  // once, it would be a batch of one and all others would wait for it.
  function sendSoon(): void {
    if (scheduled || inFlight >= maxInFlight || waiting.length === 0) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      send();
    });
  }

  function send(): void {
    waiting = held.keep(waiting);
    while (inFlight < maxInFlight && waiting.length > 0) {
      const batch = waiting.slice(0, fitting(waiting, Math.min(maxBatch, share())));
      waiting = waiting.slice(batch.length);
      inFlight++;
      void settle(batch, { lockMs: shortly }).finally(() => {
        inFlight--;
        sendSoon();
      });
    }
  }

  /**
   * How many queued appends the next statement takes: all of them or, if they have many events, an equal share for each free statement. If
   * one statement took them all, all callers would get their outcomes at once and append again at once. This process and the server would
   * then take turns forever.
   */
  function share(): number {
    let events = 0;
    for (const { checked } of waiting) events += checked.events.length;
    return events < manyEvents ? waiting.length : Math.ceil(waiting.length / (maxInFlight - inFlight));
  }

  /** Resolves or rejects each append of the batch, or lets it wait apart. Never rejects itself. */
  async function settle(batch: readonly Waiting[], attempt: Attempt): Promise<void> {
    const { lockMs, since = performance.now(), onLocked } = attempt;
    try {
      const outcomes = await sendBatch(
        batch.map(({ checked }) => checked),
        lockMs,
      );
      for (const [index, outcome] of outcomes.entries()) batch[index]?.resolve(outcome);
    } catch (error) {
      const checked = batch.filter((one) => !isUnchecked(one, error));
      if (checked.length < batch.length) {
        for (const one of batch) if (!checked.includes(one)) one.reject(error);
        return checked.length > 0 ? settle(checked, attempt) : undefined;
      }
      const isLocked = lockStates.has(sqlStateOf(error));
      if (isLocked && onLocked) return onLocked();
      const free = isLocked ? await held.keepHeld(batch, since) : batch;
      if (free.length < batch.length) return free.length > 0 ? settle(free, { lockMs: shortly }) : undefined;
      if (isLocked && (batch.length === 1 || performance.now() - since > lockTimeoutMs))
        return held.keepAll(batch, since);
      if (isOutage(error) || batch.length === 1) {
        for (const { reject } of batch) reject(error);
        return;
      }
      // PostgreSQL refuses one of the appends, or one waits for what can't be asked for. Nothing was written. Bisect the batch until that
      // append is alone.
      const middle = Math.ceil(batch.length / 2);
      for (const half of [batch.slice(0, middle), batch.slice(middle)])
        await settle(half, isLocked ? { lockMs: shortly, since } : attempt);
    }
  }

  return {
    append: (checked) =>
      new Promise((resolve, reject) => {
        waiting.push({ checked, number: count++, resolve, reject });
        sendSoon();
      }),
  };
}

interface Attempt {
  /** How long the statement waits for each lock. */
  readonly lockMs: number;
  /** When the first statement of these appends was sent. */
  readonly since?: number;
  /** What happens if it has waited in vain. By default, the appends that need what is held wait apart, and the others are sent again. */
  readonly onLocked?: (() => void) | undefined;
}

// With fewer events, a second statement and commit cost as much as the parallel execution saves.
const manyEvents = 64;

// A lock was not free in time, or PostgreSQL ended the statement because of a deadlock with a transaction of the application, or of a conflict.
const lockStates: ReadonlySet<string | undefined> = new Set(['55P03', '40P01', '40001']);
