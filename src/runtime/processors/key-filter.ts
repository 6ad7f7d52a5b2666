/** Keys that were put in may be told from those that were not, in two bytes each. */
export interface KeyFilter {
  add(text: string): void;
  /** False: it was never added. True: it may have been; of those that were not, about one in a thousand gives that. */
  mayHold(text: string): boolean;
}

// Keys of each part. A part is made when the one before it is full, so that few keys need little; 22 MB hold 11 million keys in all.
const capacities = [1 << 17, 1 << 19, 1 << 21, 1 << 23];
const bitsPerKey = 16;
const probes = 5;

/** A Bloom filter that grows: what was never written to a table need not be looked for in it. Full, it excludes nothing any more. */
export function createKeyFilter(sizes: readonly number[] = capacities): KeyFilter {
  const parts: { readonly bits: Uint32Array; readonly capacity: number; keys: number }[] = [];
  let full = false;
  let first = 0;
  let second = 0;

  function isIn({ bits }: { readonly bits: Uint32Array }): boolean {
    const mask = bits.length * 32 - 1; // a power of two
    for (let probe = 0; probe < probes; probe++) {
      const bit = (first + Math.imul(probe, second)) & mask;
      if (((bits[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  /** Two of FNV-1a over the text's code units, in one walk. */
  function hash(text: string): void {
    first = 0x811c9dc5;
    second = 0x9747b28c;
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      first = Math.imul(first ^ unit, 0x01000193);
      second = Math.imul(second ^ unit, 0x01000193);
    }
    first = mixed(first);
    second = mixed(second) | 1; // odd, so that the probes differ
  }

  return {
    add(text) {
      if (full) return;
      let part = parts.at(-1);
      if (!part || part.keys >= part.capacity) {
        const capacity = sizes[parts.length];
        if (capacity === undefined) {
          full = true;
          parts.length = 0;
          return;
        }
        part = { bits: new Uint32Array((capacity * bitsPerKey) / 32), capacity, keys: 0 };
        parts.push(part);
      }
      hash(text);
      const mask = part.bits.length * 32 - 1;
      for (let probe = 0; probe < probes; probe++) {
        const bit = (first + Math.imul(probe, second)) & mask;
        part.bits[bit >>> 5] = (part.bits[bit >>> 5] ?? 0) | (1 << (bit & 31));
      }
      part.keys++;
    },
    mayHold(text) {
      if (full) return true;
      if (parts.length === 0) return false;
      hash(text);
      return parts.some(isIn);
    },
  };
}

/** The last mixing of MurmurHash3, whose low bits are as good as its high ones. */
function mixed(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
}
