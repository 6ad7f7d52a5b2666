import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { hasNoConnectionLeft } from './database-errors.ts';

/** Short compared with a statement, long compared with the cost of a refused connection for the server. */
const pauseMs = 50;

/**
 * Returns a connection of the pool. If the server or a pooler has none left, waits until one is free in the pool or on the server.
 *
 * @throws the driver's error; after the wait, the one that says that none is left
 */
export function connectWhenFree(pool: pg.Pool, withinMs: number): Promise<pg.PoolClient> {
  return pool.connect().catch((refusal: unknown) => retryWhileFull(pool, performance.now() + withinMs, refusal));
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
