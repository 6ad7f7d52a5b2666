import { createHash } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';

/** How many bytes of rows a comparison holds at once: several may run beside processors, which take a share of their own. */
export const maxRowBytes = getHeapStatistics().heap_size_limit / 8;

/** What a row takes besides its large values, about. */
export const rowBytes = 300;

interface Share {
  readonly of: number;
  readonly at: number;
}

/**
 * The rounds of a comparison, each with a share of the keys. There is one if its rows fit into memory. Otherwise a round leaves half of its keys to a
 * later one, as often as needed, and the log is read again for each.
 */
export class Rounds {
  #share: Share = { of: 1, at: 0 };
  readonly #later: Share[] = [];

  /** Whether the row with this key belongs to the current round. */
  has(text: string): boolean {
    const { of, at } = this.#share;
    // Other bytes of the hash than those that choose a sample.
    return of === 1 || createHash('md5').update(text).digest().readUInt32BE(4) % of === at;
  }

  /** Leaves half of the keys to a later round. */
  narrow(): void {
    const { of, at } = this.#share;
    this.#share = { of: of * 2, at };
    this.#later.push({ of: of * 2, at: at + of });
  }

  /** Begins the next round, if there is one. */
  next(): boolean {
    const share = this.#later.pop();
    if (share) this.#share = share;
    return share !== undefined;
  }
}
