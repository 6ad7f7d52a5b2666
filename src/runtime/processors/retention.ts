import type { Logger } from 'pino';
import { pruneAppendKeys } from '../../store/log/append-statement.ts';
import type { Database } from '../../store/postgres/database.ts';
import { pruneChangesWithoutOwner, pruneLeases, pruneRetired, pruneRuns } from '../../store/processors/retention.ts';
import { lockReactor, readReactors } from '../../store/reactors/reactors.ts';
import { pruneStepKeys } from '../../store/reactors/step-keys.ts';
import { createRounds, type Rounds } from '../scheduling/rounds.ts';
import { keepChangesMinutes } from './pruning.ts';

export interface RetentionOptions {
  /** Of keys of clients. */
  readonly idempotencyDays: number;
  /** Of the outcomes of reactors' steps. */
  readonly stepDays: number;
}

const everyMinute = 60_000;
const everyHour = 3_600_000;
// Short transactions: an append may be waiting for one of these keys, or a reactor for its row.
const atOnce = 1000;
const keepRunsDays = 7;
const keepLeasesDays = 1;

/** Forgets what is older than it is kept and has no other owner: docs/operating.md has all tables. Several processes may do it at the same time. */
export function createRetention(db: Database, options: RetentionOptions, logger: Logger): Pick<Rounds, 'stop'> {
  const failed = (what: string) => (error: unknown) =>
    logger.warn({ err: error }, `${what} were not removed; trying again. ${String(error)}`);
  const keys = createRounds(
    everyMinute,
    async (signal) => {
      while (!signal.aborted && (await pruneAppendKeys(db, options.idempotencyDays, atOnce)) === atOnce);
    },
    failed('old idempotency keys'),
  );
  const rest = createRounds(everyHour, (signal) => pruneAll(db, options.stepDays, signal), failed('old records'));
  return {
    stop: async () => void (await Promise.all([keys.stop(), rest.stop()])),
  };
}

export async function pruneAll(db: Database, stepDays: number, signal: AbortSignal): Promise<void> {
  const tasks = [
    () => pruneRuns(db, keepRunsDays),
    () => pruneChangesWithoutOwner(db, keepChangesMinutes),
    () => pruneRetired(db),
    () => pruneLeases(db, keepLeasesDays),
    () => pruneSteps(db, stepDays, signal),
  ];
  for (const task of tasks) {
    if (!signal.aborted) await task();
  }
}

async function pruneSteps(db: Database, days: number, signal: AbortSignal): Promise<void> {
  for (const { name } of await readReactors(db)) {
    const prune = () =>
      db.transaction(async (tx) => {
        // So that no rewind, no checkpoint and no letter comes in between.
        await lockReactor(tx, name);
        return pruneStepKeys(tx, name, days, atOnce);
      });
    while (!signal.aborted && (await prune()) === atOnce);
  }
}
