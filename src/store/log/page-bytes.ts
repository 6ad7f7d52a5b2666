/** Rows of COPY as they came, one after the other: a buffer for each would cost half as much as decoding it. */
export interface PageBytes {
  /** May be longer than its rows. */
  readonly bytes: Buffer;
  /** Where each row ends, behind its newline. */
  readonly ends: readonly number[];
}

/** Collects the rows of a page. */
export interface PageCollector {
  /** A row with its newline; copied, so that it need not last. */
  add(row: Uint8Array): void;
  collected(): PageBytes;
}

// Most pages of a process that has caught up hold a few events; a full one takes eight doublings, a tenth of a microsecond an event.
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
    },
    collected: () => ({ bytes, ends }),
  };
}
