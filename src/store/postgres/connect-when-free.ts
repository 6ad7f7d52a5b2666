import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { hasNoConnectionLeft } from './database-errors.ts';

/** Short beside what a statement takes, long beside what a refused connection costs the server. */
const pauseMs = 50;

/**
 * A connection of the pool. Where the server or a pooler has none left, this waits for one: of the pool, or one that another process gives back.
 *
 * @throws what the driver says, in the end that there is none left
 */
export function connectWhenFree(pool: pg.Pool, withinMs: number): Promise<pg.PoolClient> {
  return pool.connect().catch((refusal: unknown) => retryWhileFull(pool, performance.now() + withinMs, refusal));
}

async function retryWhileFull(pool: pg.Pool, until: number, refusal: unknown): Promise<pg.PoolClient> {
  for (let last = refusal; ; ) {
    if (!hasNoConnectionLeft(last) || performance.now() > until) throw last;
    // At random, so that those who wait do not come together each time.
    await pause(pauseMs * (0.5 + Math.random()));
    try {
      return await pool.connect();
    } catch (error) {
      last = error;
    }
  }
}
