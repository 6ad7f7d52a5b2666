import { RefoldError } from '../../errors.ts';
import type { AppendLock } from '../log/append-locks.ts';
import type { CheckedAppend } from '../log/append-request.ts';
import type { AppendOutcome } from '../log/append-statement.ts';

/** An append and its caller. */
export interface Waiting {
  readonly checked: CheckedAppend;
  /** The order in which the appends of a process came. */
  readonly number: number;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
  /** Since when it waits for a lock, as `performance.now()`. */
  since?: number;
  /** Filled in when it is needed. */
  locks?: readonly AppendLock[];
}

// A statement is held in memory as text, here and in the server. Large events go in smaller batches.
const longestStatement = 4 * 1024 * 1024;

/** How many of the queued appends fit into one statement; at least one. */
export function fitting(waiting: readonly Waiting[], maxBatch: number): number {
  let length = 0;
  const tooMany = waiting.findIndex(({ checked }, index) => {
    for (const { events } of checked.prepared.parts) for (const event of events) length += event.length;
    return index > 0 && (index >= maxBatch || length > longestStatement);
  });
  return tooMany < 0 ? waiting.length : tooMany;
}

/** Whether an error says that the unique values of this append can't be checked. The others of its batch need not wait. */
export function isUnchecked({ checked }: Waiting, error: unknown): boolean {
  if (!(error instanceof RefoldError) || error.code !== 'UNIQUE_CHECK_UNAVAILABLE') return false;
  const { types } = error.fields;
  return Array.isArray(types) && checked.events.some(({ family, type }) => types.includes(`${family}.${type}`));
}

/** The error of an append that has waited in vain for this lock. */
export function lockedError({ checked, since = performance.now() }: Waiting, { kind, what }: AppendLock): RefoldError {
  const streams = checked.prepared.parts.map(({ family, streamId }) => ({ family, streamId }));
  const waitedMs = Math.round(performance.now() - since);
  const why = kind === 'inline' ? ', because rows of inline projections commit with the append' : '';
  return new RefoldError(
    'STREAM_LOCKED',
    `The append waited ${waitedMs} ms for ${what}: another transaction holds it until it ends${why}. Nothing was written: try again. If this persists, pg_blocking_pids() shows the session that holds it.`,
    { streams, waitedMs, ...(kind === 'inline' ? { inline: what } : {}) },
  );
}
