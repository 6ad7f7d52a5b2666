import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { hasNoConnectionLeft } from './database-errors.ts';

/** Short compared with a statement, long compared with the cost of a refused connection for the server. */
const pauseMs = 50;

/** How long to wait for a busy connection, in milliseconds: twice as long as opening one took, within these limits. */
const patience = { least: 20, most: 100 } as const;

/** Returns a connection of the pool. */
export type Connect = () => Promise<pg.PoolClient>;

/**
 * Opens connections of a pool sparingly: many short statements at one moment, as at a start, share the few that are open. A new connection costs
 * the server a process that reads its catalog and plans each statement again. It is opened if none becomes free while it could have been opened.
 *
 * If the server or a pooler has no connection left, waits until one is free in the pool or on the server.
 *
 * @param withinMs how long to wait if the server has none left
 * @returns rejects with the driver's error; after the wait, with the one that says that none is left
 */
export function connectWhenFree(pool: pg.Pool, withinMs: number): Connect {
  const waiting = new Set<() => void>();
  let openedInMs: number = patience.most;
  // The event comes before the connection is idle.
  pool.on('release', () => queueMicrotask(() => waiting.values().next().value?.()));

  /** Whether the pool would open a connection although it has some. */
  function wouldGrow(): boolean {
    const { totalCount, idleCount, waitingCount, options } = pool;
    return totalCount > 0 && totalCount < options.max && idleCount <= waitingCount;
  }

  function untilFree(): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, Math.min(patience.most, Math.max(patience.least, 2 * openedInMs)));
      waiting.add(end);
    });
  }

  async function take(): Promise<pg.PoolClient> {
    const { totalCount } = pool;
    const start = performance.now();
    const taking = pool.connect();
    if (pool.totalCount === totalCount) return taking;
    const client = await taking;
    openedInMs = performance.now() - start;
    return client;
  }

  return () =>
    (wouldGrow() ? untilFree().then(take) : take()).catch((refusal: unknown) =>
      retryWhileFull(pool, performance.now() + withinMs, refusal),
    );
}

async function retryWhileFull(pool: pg.Pool, until: number, refusal: unknown): Promise<pg.PoolClient> {
  for (let last = refusal; ; ) {
    if (!hasNoConnectionLeft(last) || performance.now() > until) throw last;
    // Random, because waiting processes should not all retry at the same time.
    await pause(pauseMs * (0.5 + Math.random()));
    try {
      return await pool.connect();
    } catch (error) {
      last = error;
    }
  }
}
