import { RefoldError } from '../errors.ts';
import { type AppendOutcome, appendBatch, type PreparedAppend } from './append-statement.ts';
import { sqlStateOf } from './database-errors.ts';
import type { Queryable } from './statement.ts';

export interface AppendQueueOptions {
  /** Appends that are joined into one statement at most. @default 256 */
  readonly maxBatch?: number;
  /** Statements under way at the same time at most; the more, the smaller the batches. @default 2 */
  readonly maxInFlight?: number;
}

/**
 * Joins what many callers append at the same time: while statements are under way, what else is to be appended is
 * collected, and leaves as one statement, with one commit, when a slot is free. Each caller gets its own outcome.
 */
export interface AppendQueue {
  append(prepared: PreparedAppend): Promise<AppendOutcome>;
}

interface Waiting {
  readonly prepared: PreparedAppend;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

export function createAppendQueue(db: Queryable, options: AppendQueueOptions = {}): AppendQueue {
  const { maxBatch = 256, maxInFlight = 2 } = options;
  let waiting: Waiting[] = [];
  let inFlight = 0;
  let scheduled = false;

  // Not at once: whoever is told an outcome now may append again in the same turn, and so may others. Sent at once, the first
  // of them would travel alone and all others wait for it.
  function sendSoon(): void {
    if (scheduled || inFlight >= maxInFlight || waiting.length === 0) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      send();
    });
  }

  function send(): void {
    while (inFlight < maxInFlight && waiting.length > 0) {
      const batch = waiting.slice(0, fitting(waiting, maxBatch));
      waiting = waiting.slice(batch.length);
      inFlight++;
      void settle(db, batch).finally(() => {
        inFlight--;
        sendSoon();
      });
    }
  }

  return {
    append: (prepared) =>
      new Promise((resolve, reject) => {
        waiting.push({ prepared, resolve, reject });
        sendSoon();
      }),
  };
}

// A statement is text in memory, here and in the server: large events travel in smaller company.
const longestStatement = 4 * 1024 * 1024;

/** How many of those who wait fit into one statement; at least one. */
function fitting(waiting: readonly Waiting[], maxBatch: number): number {
  let length = 0;
  const tooMany = waiting.findIndex(({ prepared }, index) => {
    for (const { events } of prepared.parts) for (const event of events) length += event.length;
    return index > 0 && (index >= maxBatch || length > longestStatement);
  });
  return tooMany < 0 ? waiting.length : tooMany;
}

/** Gives each of the batch its outcome or its error; never rejects. */
async function settle(db: Queryable, batch: readonly Waiting[]): Promise<void> {
  try {
    const outcomes = await withoutDeadlock(() =>
      appendBatch(
        db,
        batch.map(({ prepared }) => prepared),
      ),
    );
    for (const [index, outcome] of outcomes.entries()) batch[index]?.resolve(outcome);
  } catch (error) {
    if (isUnreachable(error) || batch.length === 1) {
      for (const { reject } of batch) reject(isUnreachable(error) ? unknownOutcome(error) : error);
      return;
    }
    // One of them has something that PostgreSQL refuses, and nothing was written: halve until it is alone.
    const middle = Math.ceil(batch.length / 2);
    await settle(db, batch.slice(0, middle));
    await settle(db, batch.slice(middle));
  }
}

// Appends lock in one order and don't deadlock with each other; with transactions of the user's own they may.
const deadlockAttempts = 5;

async function withoutDeadlock<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const sqlState = sqlStateOf(error);
      if ((sqlState !== '40P01' && sqlState !== '40001') || attempt === deadlockAttempts) throw error;
    }
  }
}

function isUnreachable(error: unknown): error is RefoldError {
  return error instanceof RefoldError && error.code === 'DATABASE_UNREACHABLE';
}

function unknownOutcome(error: RefoldError): RefoldError {
  return new RefoldError(
    error.code,
    `${error.message} The append may have been written all the same; with an idempotency key it is safe to try again.`,
    { ...error.fields },
    { cause: error },
  );
}
