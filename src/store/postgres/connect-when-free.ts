import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

const tooManyConnections = '53300';
/** Short beside what a statement takes, long beside what a refused connection costs the server. */
const pauseMs = 50;

/**
 * A connection of the pool. Where the server has none left, this waits for one: of the pool, or one that another process gives back.
 *
 * @throws what the driver says, in the end that the server has no connection left
 */
export function connectWhenFree(pool: pg.Pool, withinMs: number): Promise<pg.PoolClient> {
  return pool.connect().catch((refusal: unknown) => retryWhileFull(pool, performance.now() + withinMs, refusal));
}

async function retryWhileFull(pool: pg.Pool, until: number, refusal: unknown): Promise<pg.PoolClient> {
  for (let last = refusal; ; ) {
    if (!isFull(last) || performance.now() > until) throw last;
    // At random, so that those who wait do not come together each time.
    await pause(pauseMs * (0.5 + Math.random()));
    try {
      return await pool.connect();
    } catch (error) {
      last = error;
    }
  }
}

function isFull(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === tooManyConnections;
}
