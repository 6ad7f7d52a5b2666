import { getHeapStatistics } from 'node:v8';
import type { VersionState } from '../../projections/projection/version-map.ts';

/** What a processor has folded since its last write. */
export interface Unwritten {
  readonly state: VersionState;
  readonly events: number;
  /** The number of changed rows. */
  readonly rows: number;
  /** The size of the rows in memory, changed or not, and of the skipped events. */
  readonly bytes: number;
  /** Dead letters and skipped events. */
  readonly leftOut: number;
  /** Time since the last write, in milliseconds. */
  readonly sinceMs: number;
  /** Duration of the last write, in milliseconds. */
  readonly writeTook: number;
}

// Rows to keep in memory however full it is.
const fewRows = 100_000;
// A row kept in memory is not read again, and not written again for every batch. Building a table with more rows than are kept takes three times
// as long. So a build keeps as many rows as fit, up to a reasonable size of a transaction.
const manyRows = 1_000_000;
const shareOfHeap = 0.25;

/** Returns how much a processor keeps in memory after a write: so many rows, as long as they are not larger than so many bytes. */
export function rowsToKeep(state: VersionState): { readonly rows: number; readonly bytes: number } {
  return { rows: state === 'building' && heapHasRoom() ? manyRows : fewRows, bytes: heapLimit * shareOfRows };
}

const { heap_size_limit: heapLimit } = getHeapStatistics();
// A million usual rows fit into this share of the usual heap. Beyond twice the share, rows are written and evicted.
const shareOfRows = 1 / 16;

/** Whether the heap is small compared with its limit (`--max-old-space-size`). Garbage not yet collected counts too. */
function heapHasRoom(): boolean {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used < limit * shareOfHeap;
}

// Far behind the head, rows stay in memory and are written once for many batches, because writing the same row again and again is the main cost
// of a build. The number of rows bounds memory. The time bounds what a crash repeats, and how late readers of a served version see rows.
const served = { events: 100_000, milliseconds: 5_000 };
const building = { milliseconds: 5_000, maxMilliseconds: 30_000 };
// If writes are slow, make them rarer: they may take a twentieth of the time.
const shareOfWriting = 20;
// Every process with subscribers reads the whole list of a batch's changes.
const changesPerBatch = 5_000;

/** Whether it is time to write, for a processor that has not caught up. One that has caught up writes at once. */
export function writeIsDue({ state, events, rows, bytes, leftOut, sinceMs, writeTook }: Unwritten): boolean {
  if (leftOut >= changesPerBatch || bytes >= 2 * heapLimit * shareOfRows) return true;
  if (state === 'building') {
    const { milliseconds, maxMilliseconds } = building;
    const pause = Math.min(maxMilliseconds, Math.max(milliseconds, writeTook * shareOfWriting));
    return sinceMs >= pause || (rows >= fewRows && rows >= rowsToKeep(state).rows);
  }
  return events >= served.events || rows >= changesPerBatch || sinceMs >= served.milliseconds;
}

/** How long a processor has been at work since its last write, and how long that write took. All in milliseconds. */
export class WriteTimes {
  #wroteAt = performance.now();
  #tookMs = 0;
  /** Of pages that are over. */
  #busyMs = 0;
  #busySince = performance.now();

  /** The duration of the last write. */
  get tookMs(): number {
    return this.#tookMs;
  }

  get sinceMs(): number {
    return performance.now() - this.#wroteAt;
  }

  get busyMs(): number {
    return this.#busyMs + performance.now() - this.#busySince;
  }

  /** A page begins. */
  begin(): void {
    this.#busySince = performance.now();
  }

  /** The page is over. */
  end(): void {
    this.#busyMs = this.busyMs;
  }

  /** A write ends that began at this time. */
  wrote(start: number): void {
    const now = performance.now();
    this.#busyMs = 0;
    this.#busySince = now;
    this.#wroteAt = now;
    this.#tookMs = now - start;
  }
}
