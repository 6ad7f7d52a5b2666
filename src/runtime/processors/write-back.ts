import { getHeapStatistics } from 'node:v8';
import type { VersionState } from '../../projections/declaration/version-map.ts';

/** What a processor has folded and not yet written. */
export interface Unwritten {
  readonly state: VersionState;
  readonly events: number;
  /** That have changed. */
  readonly rows: number;
  /** Dead letters. */
  readonly letters: number;
  /** Since the last write, in milliseconds. */
  readonly sinceMs: number;
  /** The last write, in milliseconds. */
  readonly writeTook: number;
}

// Rows that memory keeps whatever else is in it.
const fewRows = 100_000;
// Each row that is kept is not read again, nor written once more for the next events: a table of more rows than are kept is built at a
// third of the pace. So a build keeps as many as fit, up to what a transaction can well write.
const manyRows = 1_000_000;
const shareOfHeap = 0.25;

/** Rows that a processor keeps in memory when all is written. */
export function rowsToKeep(state: VersionState): number {
  return state === 'building' && heapHasRoom() ? manyRows : fewRows;
}

/** Whether the heap of the process is small beside what Node lets it grow to (`--max-old-space-size`). What is garbage by now counts, too. */
function heapHasRoom(): boolean {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used < limit * shareOfHeap;
}

// While far behind, rows stay in memory and are written once for many batches: PostgreSQL writing the same row again and again
// is what a build costs. The rows bound the memory, the time what a crash costs; who is served already also sees what is written.
const served = { events: 100_000, milliseconds: 5_000 };
const building = { milliseconds: 5_000, mostMilliseconds: 30_000 };
// Where writing is slow, it is done less often: a twentieth of the time.
const shareOfWriting = 20;
// A list of changes is read whole by every process with subscribers.
const changesPerBatch = 5_000;

/** Whether it is time to write, for a processor that has not caught up; one that has writes at once. */
export function writeIsDue({ state, events, rows, letters, sinceMs, writeTook }: Unwritten): boolean {
  if (letters >= changesPerBatch) return true;
  if (state === 'building') {
    const { milliseconds, mostMilliseconds } = building;
    const pause = Math.min(mostMilliseconds, Math.max(milliseconds, writeTook * shareOfWriting));
    return sinceMs >= pause || (rows >= fewRows && rows >= rowsToKeep(state));
  }
  return events >= served.events || rows >= changesPerBatch || sinceMs >= served.milliseconds;
}
