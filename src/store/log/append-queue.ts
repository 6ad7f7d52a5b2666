import { RefoldError } from '../../errors.ts';
import { isOutage, sqlStateOf } from '../postgres/database-errors.ts';
import type { CheckedAppend } from './append-request.ts';
import type { AppendOutcome, PreparedAppend } from './append-statement.ts';

export interface AppendQueueOptions {
  /** The maximum of appends in one statement. @default 256 */
  readonly maxBatch?: number;
  /** The maximum of concurrent statements. More of them make batches smaller. @default 2 */
  readonly maxInFlight?: number;
  /** How long an append waits for a stream that another transaction has locked, in milliseconds. @default 5000 */
  readonly lockTimeoutMs?: number;
}

/**
 * Batches concurrent appends of many callers. While statements are in flight, new appends are queued. When a statement finishes, the queue
 * is sent as one statement with one commit. Each caller gets its own outcome.
 */
export interface AppendQueue {
  append(checked: CheckedAppend): Promise<AppendOutcome>;
}

interface Waiting {
  readonly checked: CheckedAppend;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends a batch and returns the outcome of each append. If it throws, all appends failed and nothing was written. */
export type SendAppends = (batch: readonly CheckedAppend[], lockTimeoutMs: number) => Promise<AppendOutcome[]>;

export function createAppendQueue(sendBatch: SendAppends, options: AppendQueueOptions = {}): AppendQueue {
  const { maxBatch = 256, maxInFlight = 2, lockTimeoutMs = 5000 } = options;
  let waiting: Waiting[] = [];
  let inFlight = 0;
  let scheduled = false;

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
    while (inFlight < maxInFlight && waiting.length > 0) {
      const batch = waiting.slice(0, fitting(waiting, Math.min(maxBatch, share())));
      waiting = waiting.slice(batch.length);
      inFlight++;
      void settle(sendBatch, batch, { lockTimeoutMs, waitedMs: 0, locked: new Set() }).finally(() => {
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

  return {
    append: (checked) =>
      new Promise((resolve, reject) => {
        waiting.push({ checked, resolve, reject });
        sendSoon();
      }),
  };
}

// With fewer events, a second statement and commit cost as much as the parallel execution saves.
const manyEvents = 64;

// A statement is held in memory as text, here and in the server. Large events go in smaller batches.
const longestStatement = 4 * 1024 * 1024;

/** How many of the queued appends fit into one statement; at least one. */
function fitting(waiting: readonly Waiting[], maxBatch: number): number {
  let length = 0;
  const tooMany = waiting.findIndex(({ checked }, index) => {
    for (const { events } of checked.prepared.parts) for (const event of events) length += event.length;
    return index > 0 && (index >= maxBatch || length > longestStatement);
  });
  return tooMany < 0 ? waiting.length : tooMany;
}

interface LockWait {
  readonly lockTimeoutMs: number;
  /** How long the appends have already waited without success. */
  readonly waitedMs: number;
  /** Streams that are known to be locked. Other appends of the batch do not wait for them. */
  readonly locked: Set<string>;
}

// Once the whole batch has waited without success, this is enough to check whether a lock is free.
const lookAgainMs = 100;

/** Resolves or rejects each append of the batch. Never rejects itself. */
async function settle(sendBatch: SendAppends, batch: readonly Waiting[], lockWait: LockWait): Promise<void> {
  const { lockTimeoutMs, waitedMs, locked } = lockWait;
  const free = batch.filter((one) => !namesOf(one.checked.prepared).some((name) => locked.has(name)));
  for (const { checked, reject } of batch.filter((one) => !free.includes(one)))
    reject(streamLocked(checked.prepared, waitedMs));
  if (free.length === 0) return;
  try {
    const appends = free.map(({ checked }) => checked);
    const outcomes = await withoutDeadlock(() => sendBatch(appends, lockTimeoutMs));
    for (const [index, outcome] of outcomes.entries()) free[index]?.resolve(outcome);
  } catch (error) {
    const isLocked = sqlStateOf(error) === '55P03';
    const waited = waitedMs + (isLocked ? lockTimeoutMs : 0);
    const [only] = free;
    if (only && free.length === 1 && isLocked) {
      const { prepared } = only.checked;
      const names = namesOf(prepared);
      const { inline } = (error as RefoldError).fields; // only such errors have an SQLSTATE
      // With several streams it is unknown which one is locked. With a key, the lock may be that of the key. A row is not a stream.
      if (inline === undefined && names.length === 1 && prepared.idempotencyKey === undefined) locked.add(names.join());
      only.reject(typeof inline === 'string' ? inlineLocked(prepared, waited, inline) : streamLocked(prepared, waited));
      return;
    }
    if (isOutage(error) || free.length === 1) {
      for (const { reject } of free) reject(error);
      return;
    }
    // PostgreSQL refuses one of the appends, or one waits for a lock. Nothing was written. Bisect the batch until that append is alone.
    const next = isLocked
      ? { ...lockWait, lockTimeoutMs: Math.min(lockTimeoutMs, lookAgainMs), waitedMs: waited }
      : lockWait;
    // Sort by stream, keeping the order within it. A locked stream is then found once, and not waited for in every half.
    const sorted = isLocked ? free.toSorted((a, b) => compare(firstName(a), firstName(b))) : free;
    const middle = Math.ceil(sorted.length / 2);
    await settle(sendBatch, sorted.slice(0, middle), next);
    await settle(sendBatch, sorted.slice(middle), next);
  }
}

const namesOf = ({ parts }: PreparedAppend) => parts.map(({ family, streamId }) => `${family} ${streamId}`);
const firstName = ({ checked }: Waiting) => namesOf(checked.prepared)[0] ?? '';
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function streamLocked({ parts }: PreparedAppend, waitedMs: number): RefoldError {
  const streams = parts.map(({ family, streamId }) => ({ family, streamId }));
  const list = streams.map(({ family, streamId }) => `'${streamId}' of ${family}`).join(', ');
  return new RefoldError(
    'STREAM_LOCKED',
    `The append waited ${waitedMs} ms for ${list}, which another transaction holds. Nothing was written: try again. If this persists, pg_blocking_pids() shows the session that holds it.`,
    { streams, waitedMs },
  );
}

/** `inline`: the locked rows of inline projections. They are locked before any stream. */
function inlineLocked({ parts }: PreparedAppend, waitedMs: number, inline: string): RefoldError {
  const streams = parts.map(({ family, streamId }) => ({ family, streamId }));
  return new RefoldError(
    'STREAM_LOCKED',
    `The append waited ${waitedMs} ms for ${inline}: another transaction holds it until it ends, because rows of inline projections commit with the append. Nothing was written: try again. If this persists, pg_blocking_pids() shows the session that holds it.`,
    { streams, inline, waitedMs },
  );
}

// Appends take locks in one order and cannot deadlock with each other. They can deadlock with the application's own transactions.
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
