import { maxPageBytes } from '../statements/within-bytes.ts';

/** Rows from COPY in one buffer. A buffer per row would cost half as much as decoding the row. */
export interface PageBytes {
  /** May be longer than the rows. */
  readonly bytes: Buffer;
  /** The end of each row, after its newline. */
  readonly ends: readonly number[];
}

/** The number of events to ask for, if each has about so many bytes. */
export function pageLimit(limit: number, eventBytes: number): number {
  return limit * eventBytes <= maxPageBytes ? limit : Math.max(1, Math.floor(maxPageBytes / eventBytes));
}

/** Collects the rows of a page. */
export interface PageCollector {
  /**
   * Adds a row with its newline. Copies it: the caller may reuse the buffer. Returns whether there is room for another row. There is up to twice
   * the meant size: a reader that asks for the right number of events seldom gets there.
   */
  add(row: Uint8Array): boolean;
  collected(): PageBytes;
}

// When a process has caught up, most pages hold a few events. A full page needs eight doublings, a tenth of a microsecond per event.
const firstLength = 4096;

export function createPageCollector(): PageCollector {
  let bytes = Buffer.alloc(0);
  let length = 0;
  const ends: number[] = [];
  return {
    add(row) {
      const end = length + row.length;
      if (end > bytes.length) {
        const longer = Buffer.allocUnsafe(Math.max(firstLength, bytes.length * 2, end));
        longer.set(bytes.subarray(0, length));
        bytes = longer;
      }
      bytes.set(row, length);
      ends.push(end);
      length = end;
      return length < maxPageBytes * 2;
    },
    collected: () => ({ bytes, ends }),
  };
}
