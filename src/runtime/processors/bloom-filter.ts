/** A set of keys that may report false positives, at two bytes a key. */
export interface BloomFilter {
  add(text: string): void;
  /** False: the key was never added. True: it may have been; about one in a thousand keys that were not added also returns true. */
  mayHold(text: string): boolean;
}

// Keys per part. A part is allocated when the previous one is full, so few keys need little memory. In all, 22 MB hold 11 million keys.
const capacities = [1 << 17, 1 << 19, 1 << 21, 1 << 23];
const bitsPerKey = 16;
const probes = 5;

/** A Bloom filter that grows: it saves looking up keys that were never written to a table. When all parts are full, every key may be in it. */
export function createBloomFilter(sizes: readonly number[] = capacities): BloomFilter {
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

  /** Computes two FNV-1a hashes over the text's code units, in one pass. */
  function hash(text: string): void {
    first = 0x811c9dc5;
    second = 0x9747b28c;
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      first = Math.imul(first ^ unit, 0x01000193);
      second = Math.imul(second ^ unit, 0x01000193);
    }
    first = mixed(first);
    second = mixed(second) | 1; // odd, which makes the probes differ
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

/** The finalizer of MurmurHash3: it makes the low bits as random as the high ones. */
function mixed(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
}
