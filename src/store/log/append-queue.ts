import { RefoldError } from '../../errors.ts';
import { isOutage, sqlStateOf } from '../postgres/database-errors.ts';
import type { CheckedAppend } from './append-request.ts';
import type { AppendOutcome, PreparedAppend } from './append-statement.ts';

export interface AppendQueueOptions {
  /** Appends that are joined into one statement at most. @default 256 */
  readonly maxBatch?: number;
  /** Statements under way at the same time at most; the more, the smaller the batches. @default 2 */
  readonly maxInFlight?: number;
  /** How long an append waits for a stream that another transaction holds, in milliseconds. @default 5000 */
  readonly lockTimeoutMs?: number;
}

/**
 * Joins what many callers append at the same time: while statements are under way, what else is to be appended is
 * collected, and leaves as one statement, with one commit, when a slot is free. Each caller gets its own outcome.
 */
export interface AppendQueue {
  append(checked: CheckedAppend): Promise<AppendOutcome>;
}

interface Waiting {
  readonly checked: CheckedAppend;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends a batch and gives the outcome of each; an error is one of them all, and nothing is written then. */
export type SendAppends = (batch: readonly CheckedAppend[], lockTimeoutMs: number) => Promise<AppendOutcome[]>;

export function createAppendQueue(sendBatch: SendAppends, options: AppendQueueOptions = {}): AppendQueue {
  const { maxBatch = 256, maxInFlight = 2, lockTimeoutMs = 5000 } = options;
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
   * How many of those who wait a statement takes: all, or where they bring many events an equal part for each statement that may leave now. In
   * one statement they would all be told at once, and append again at once, for ever: this process and the server would take turns.
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

// Below, a second statement and commit cost as much as is won by sending them beside the first.
const manyEvents = 64;

// A statement is text in memory, here and in the server: large events travel in smaller company.
const longestStatement = 4 * 1024 * 1024;

/** How many of those who wait fit into one statement; at least one. */
function fitting(waiting: readonly Waiting[], maxBatch: number): number {
  let length = 0;
  const tooMany = waiting.findIndex(({ checked }, index) => {
    for (const { events } of checked.prepared.parts) for (const event of events) length += event.length;
    return index > 0 && (index >= maxBatch || length > longestStatement);
  });
  return tooMany < 0 ? waiting.length : tooMany;
}

interface Patience {
  readonly lockTimeoutMs: number;
  /** What was waited for in vain. */
  readonly waitedMs: number;
  /** Streams that were found to be held: nobody else of the batch waits for them. */
  readonly locked: Set<string>;
}

// Enough to look whether a lock is free, once the whole batch has waited in vain.
const lookAgainMs = 100;

/** Gives each of the batch its outcome or its error; never rejects. */
async function settle(sendBatch: SendAppends, batch: readonly Waiting[], patience: Patience): Promise<void> {
  const { lockTimeoutMs, waitedMs, locked } = patience;
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
      // Of several it is not known which; with a key it may be the key that another append has; and a row is no stream.
      if (inline === undefined && names.length === 1 && prepared.idempotencyKey === undefined) locked.add(names.join());
      only.reject(typeof inline === 'string' ? inlineLocked(prepared, waited, inline) : streamLocked(prepared, waited));
      return;
    }
    if (isOutage(error) || free.length === 1) {
      for (const { reject } of free) reject(error);
      return;
    }
    // One of them has something that PostgreSQL refuses, or waits for, and nothing was written: halve until it is alone.
    const next = isLocked
      ? { ...patience, lockTimeoutMs: Math.min(lockTimeoutMs, lookAgainMs), waitedMs: waited }
      : patience;
    // Those of one stream side by side, in their order, so that a stream that is held is found before it is waited for again and again.
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
    `The append waited ${waitedMs} ms for ${list}, which another transaction holds. Nothing was written: try again. Where it stays so, pg_blocking_pids() tells which session holds it.`,
    { streams, waitedMs },
  );
}

/** `inline`: what is held of inline projections, whose rows are locked before any stream is. */
function inlineLocked({ parts }: PreparedAppend, waitedMs: number, inline: string): RefoldError {
  const streams = parts.map(({ family, streamId }) => ({ family, streamId }));
  return new RefoldError(
    'STREAM_LOCKED',
    `The append waited ${waitedMs} ms for ${inline}: another transaction holds it until it ends, since rows of inline projections commit with the append. Nothing was written: try again. Where it stays so, pg_blocking_pids() tells which session holds it.`,
    { streams, inline, waitedMs },
  );
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
