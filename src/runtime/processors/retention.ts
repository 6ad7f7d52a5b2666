import type { Logger } from 'pino';
import { pruneAppendKeys } from '../../store/log/append-statement.ts';
import type { Database } from '../../store/postgres/database.ts';
import { pruneChangesWithoutOwner, pruneLeases, pruneRetired, pruneRuns } from '../../store/processors/retention.ts';
import { pruneAwaitedEvents } from '../../store/reactors/awaited-events.ts';
import { lockReactor, readReactors } from '../../store/reactors/reactors.ts';
import { pruneStepKeys } from '../../store/reactors/step-keys.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf } from '../../thrown.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { keepChangesMinutes } from './pruning.ts';

export interface RetentionOptions {
  /** How long keys of clients are kept. */
  readonly idempotencyDays: number;
  /** How long outcomes of reactors' steps are kept. */
  readonly stepDays: number;
}

const everyMinute = 60_000;
const everyHour = 3_600_000;
// Keep the transactions short: an append may wait for one of these keys, or a reactor for its row.
const atOnce = 1000;
const keepRunsDays = 7;
const keepLeasesDays = 1;

/** Deletes expired records that no other component deletes; docs/retention.md lists all tables. Several processes may do it at the same time. */
export function createRetention(db: Database, options: RetentionOptions, logger: Logger): Pick<PeriodicTask, 'stop'> {
  const failed = (what: string) => (error: unknown) =>
    logger.warn({ err: error }, `${what} were not removed; trying again. ${reasonOf(error)}`);
  const keys = startPeriodicTask(
    everyMinute,
    async (signal) => {
      while (!signal.aborted && (await pruneAppendKeys(db, options.idempotencyDays, atOnce)) === atOnce);
    },
    failed('old idempotency keys'),
  );
  const rest = startPeriodicTask(everyHour, (signal) => pruneAll(db, options.stepDays, signal), failed('old records'));
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
    () => pruneReactors(db, stepDays, signal),
  ];
  for (const task of tasks) {
    if (!signal.aborted) await task();
  }
}

async function pruneReactors(db: Database, days: number, signal: AbortSignal): Promise<void> {
  for (const { name } of await readReactors(db)) {
    for (const prune of [pruneAwaitedEvents, (tx: Queryable) => pruneStepKeys(tx, name, days, atOnce)]) {
      const pruned = () =>
        db.transaction(async (tx) => {
          // The lock excludes a rewind, a checkpoint and a dead letter in between.
          await lockReactor(tx, name);
          return prune(tx, name, atOnce);
        });
      while (!signal.aborted && (await pruned()) === atOnce);
    }
  }
}
