import type { Logger } from 'pino';
import { pruneAppendKeys } from '../store/append-statement.ts';
import type { Queryable } from '../store/statement.ts';
import { createRounds, type Rounds } from './rounds.ts';

const everyMilliseconds = 60_000;
// Short transactions: an append may be waiting for one of these keys.
const atOnce = 1000;

/** Forgets idempotency keys of clients when they are older than so many days. Several processes may do it at the same time. */
export function createKeyPruner(db: Queryable, days: number, logger: Logger): Rounds {
  return createRounds(
    everyMilliseconds,
    async (signal) => {
      while (!signal.aborted && (await pruneAppendKeys(db, days, atOnce)) === atOnce);
    },
    (error) => logger.warn({ err: error }, `old idempotency keys were not removed; trying again. ${String(error)}`),
  );
}
