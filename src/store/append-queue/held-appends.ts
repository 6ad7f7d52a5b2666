import type { AppendLock } from '../log/append-locks.ts';
import { fitting, lockedError, type Waiting } from './waiting-appends.ts';

export interface HeldAppendsOptions {
  /** All locks that an append takes, in the order in which it waits for them. */
  locksOf(one: Waiting): readonly AppendLock[];
  /** See `readHeld`. */
  readHeld(locks: readonly AppendLock[], waitMs: number): Promise<readonly AppendLock[]>;
  /** Sends a statement. `onLocked` decides what follows if it has waited in vain for `lockMs`. */
  settle(group: readonly Waiting[], lockMs: number, onLocked?: () => void): Promise<void>;
  /** Takes back appends that wait for nothing any more. */
  goOn(appends: readonly Waiting[]): void;
  readonly lockTimeoutMs: number;
  readonly maxBatch: number;
  /** How many connections wait at the same time. */
  readonly maxWaiting: number;
}

/** Appends that wait for what other transactions hold, apart from all others. Each waits for `lockTimeoutMs` in total. */
export interface HeldAppends {
  /** Keeps the appends that need something known to be held, and returns the others. */
  keep(appends: Waiting[]): Waiting[];
  /** Keeps those of a batch that need something held now, and returns the others. `since`: when the batch began to wait. */
  keepHeld(batch: readonly Waiting[], since: number): Promise<readonly Waiting[]>;
  /** Keeps appends that wait for something that can't be asked for, such as a row of a read table that somebody locked. */
  keepAll(batch: readonly Waiting[], since: number): void;
}

interface HeldLock {
  readonly lock: AppendLock;
  /** By their numbers. */
  readonly queue: { readonly one: Waiting; readonly timer: NodeJS.Timeout }[];
  /** Whether a connection waits for it. */
  served: boolean;
  attempts: number;
}

/** How long the joined appends wait for a lock before they find out who needs it: longer than the commit of another process takes. */
export const joinedLockMs = 100;

// With more locks than connections, each lock gets its share of this time, one after the other.
const longestWaitMs = 500;
const shortestWaitMs = 5;

/**
 * Each held lock has a queue. A connection waits for the lock, and then sends the queue as one statement, until the queue is empty. The number
 * of connections is limited, so held locks never take the connections of other appends.
 */
export function createHeldAppends(options: HeldAppendsOptions): HeldAppends {
  const { locksOf, readHeld, settle, lockTimeoutMs, maxBatch, maxWaiting } = options;
  const held = new Map<string, HeldLock>();
  let serving = 0;

  function put(lock: AppendLock, one: Waiting, since: number): void {
    one.since ??= since;
    const left = timeLeft(one);
    if (left <= 0) {
      one.reject(lockedError(one, lock));
      return;
    }
    const entry = held.get(lock.name) ?? { lock, queue: [], served: false, attempts: 0 };
    held.set(lock.name, entry);
    const next = entry.queue.findIndex((other) => other.one.number > one.number);
    const timer = setTimeout(() => expire(entry, one), left);
    entry.queue.splice(next < 0 ? entry.queue.length : next, 0, { one, timer });
  }

  const timeLeft = ({ since = 0 }: Waiting) => since + lockTimeoutMs - performance.now();

  function expire(entry: HeldLock, one: Waiting): void {
    take(entry, (other) => other === one);
    if (entry.queue.length === 0 && !entry.served) held.delete(entry.lock.name);
    one.reject(lockedError(one, entry.lock));
  }

  function take(entry: HeldLock, which: (one: Waiting) => boolean): Waiting[] {
    const taken = entry.queue.filter(({ one }) => which(one));
    entry.queue.splice(0, entry.queue.length, ...entry.queue.filter(({ one }) => !which(one)));
    for (const { timer } of taken) clearTimeout(timer);
    return taken.map(({ one }) => one);
  }

  function serve(): void {
    for (const entry of held.values()) {
      if (serving >= maxWaiting) return;
      if (entry.served) continue;
      serving++;
      entry.served = true;
      void attempt(entry).finally(() => {
        serving--;
        entry.served = false;
        held.delete(entry.lock.name);
        if (entry.queue.length > 0) held.set(entry.lock.name, entry); // after all others
        serve();
      });
    }
  }

  async function attempt(entry: HeldLock): Promise<void> {
    const { lock, queue } = entry;
    const first = queue
      .slice(
        0,
        fitting(
          queue.map(({ one }) => one),
          maxBatch,
        ),
      )
      .map(({ one }) => one);
    const group = take(entry, (one) => first.includes(one));
    const left = Math.min(...group.map(timeLeft));
    const share = Math.max(shortestWaitMs, (longestWaitMs * maxWaiting) / Math.max(maxWaiting, held.size));
    const waitMs = Math.max(1, Math.ceil(Math.min(left, share)));
    const putBack = () => {
      for (const one of group) put(lock, one, 0);
    };
    // Waiting in the statement itself has its place in the lock's queue. It may hold nothing else that appends wait for: they would wait, too.
    const needNothingElse = group.every((one) =>
      locksOf(one).every(({ alone, kind, name }) => !alone || kind === 'key' || name === lock.name),
    );
    if (lock.alone && needNothingElse) return settle(group, waitMs, putBack);
    if ((await heldAmong([lock], waitMs)).length > 0) return putBack();
    if (!lock.alone) return options.goOn([...group, ...take(entry, () => true)]);
    // Others may be faster each time: then it waits longer.
    return settle(group, Math.max(1, Math.ceil(Math.min(left, ++entry.attempts * joinedLockMs))));
  }

  // If it fails, the statement that comes next fails alike, or succeeds.
  const heldAmong: HeldAppendsOptions['readHeld'] = (locks, waitMs) => readHeld(locks, waitMs).catch(() => []);

  function keepWhere(appends: readonly Waiting[], isHeld: (lock: AppendLock) => boolean, since: number): Waiting[] {
    const others = appends.filter((one) => {
      const lock = locksOf(one).find(isHeld);
      if (lock) put(lock, one, since);
      return !lock;
    });
    serve();
    return others;
  }

  return {
    keep: (appends) =>
      held.size === 0 ? appends : keepWhere(appends, ({ name }) => held.has(name), performance.now()),
    async keepHeld(batch, since) {
      const locks = new Map(batch.flatMap((one) => locksOf(one).map((lock) => [lock.name, lock] as const)));
      const found = new Set((await heldAmong([...locks.values()], 1)).map(({ name }) => name));
      return keepWhere(batch, ({ name }) => found.has(name), since);
    },
    keepAll: (batch, since) => keepWhere(batch, ({ alone }) => alone, since),
  };
}
