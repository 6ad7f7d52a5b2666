import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ImportedAppend } from '../../events/define-import.ts';

/** An append, and how much of the file it ends with. */
export interface PlacedAppend {
  readonly append: ImportedAppend;
  readonly line: number;
  readonly bytesRead: number;
}

/** Neighbouring appends of a file, which are sent together and skipped together. */
export interface ImportRange {
  readonly appends: readonly PlacedAppend[];
  readonly events: number;
  /** Of all idempotency keys, in their order. */
  readonly digest: Buffer;
  readonly last: PlacedAppend;
}

// Enough for a statement to be worth its way and its commit, few enough for memory to stay flat.
const mostEvents = 2_500;
const mostAppends = 2_000;
// A range ends behind about one key of so many, as well. The keys decide, so that a line that is added to a file or taken out of it changes the
// ranges around it, and not all behind it.
const meanAppends = 512;

/** Puts neighbouring appends into ranges: the same ones for the same keys, in every run. */
export async function* rangesOf(appends: AsyncIterable<PlacedAppend>): AsyncGenerator<ImportRange> {
  let range = emptyRange();
  for await (const placed of appends) {
    const { events, idempotencyKey: key } = placed.append;
    range.appends.push(placed);
    range.events += events.length;
    range.keys.update(key).update('\0'); // no key that can be stored has a NUL in it
    const isFull = range.events >= mostEvents || range.appends.length >= mostAppends;
    if (!isFull && crc32(key) % meanAppends !== 0) continue;
    yield ended(range, placed);
    range = emptyRange();
  }
  const last = range.appends.at(-1);
  if (last) yield ended(range, last);
}

interface OpenRange {
  readonly appends: PlacedAppend[];
  readonly keys: Hash;
  events: number;
}

function emptyRange(): OpenRange {
  return { appends: [], keys: createHash('sha256'), events: 0 };
}

function ended({ appends, keys, events }: OpenRange, last: PlacedAppend): ImportRange {
  return { appends, events, digest: keys.digest(), last };
}
