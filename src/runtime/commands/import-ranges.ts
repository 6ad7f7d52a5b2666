import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ImportedAppend } from '../../events/define-import.ts';

/** An append, and the place in the file where it ends. */
export interface PlacedAppend {
  readonly append: ImportedAppend;
  readonly line: number;
  readonly bytesRead: number;
  /** The characters of the file's lines up to there. */
  readonly characters: number;
}

/** Adjacent appends of a file. They are sent together and skipped together. */
export interface ImportRange {
  readonly appends: readonly PlacedAppend[];
  readonly events: number;
  /** A hash of all idempotency keys, in order. */
  readonly digest: Buffer;
  readonly last: PlacedAppend;
}

// Large enough to be worth a round trip and a commit, small enough to keep memory flat.
const maxEvents = 2_500;
const maxAppends = 2_000;
// Of the lines. What is read ahead is held, too.
const maxCharacters = 8 * 1024 * 1024;
// A range also ends after about one key in this many (content-defined chunking). Because the keys decide, a line added to a file or removed
// from it changes only the ranges around it.
const meanAppends = 512;

/** Groups adjacent appends into ranges. The same keys form the same ranges in every run. */
export async function* rangesOf(appends: AsyncIterable<PlacedAppend>): AsyncGenerator<ImportRange> {
  let range = emptyRange(0);
  for await (const placed of appends) {
    const { events, idempotencyKey: key } = placed.append;
    range.appends.push(placed);
    range.events += events.length;
    range.keys.update(key).update('\0'); // a stored key never contains NUL
    const isLarge = placed.characters - range.after >= maxCharacters;
    const isFull = isLarge || range.events >= maxEvents || range.appends.length >= maxAppends;
    if (!isFull && crc32(key) % meanAppends !== 0) continue;
    yield ended(range, placed);
    range = emptyRange(placed.characters);
  }
  const last = range.appends.at(-1);
  if (last) yield ended(range, last);
}

interface OpenRange {
  readonly appends: PlacedAppend[];
  readonly keys: Hash;
  /** The characters before it. */
  readonly after: number;
  events: number;
}

function emptyRange(after: number): OpenRange {
  return { appends: [], keys: createHash('sha256'), after, events: 0 };
}

function ended({ appends, keys, events }: OpenRange, last: PlacedAppend): ImportRange {
  return { appends, events, digest: keys.digest(), last };
}
