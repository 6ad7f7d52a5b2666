import { invalidRow, unstorable } from './invalid-row.ts';

export function storableText(text: string, path: string): string {
  if (text.includes('\u0000')) throw unstorable(path);
  return text.toWellFormed(); // a lone surrogate would come back from PostgreSQL as U+FFFD
}

// A third of a page, 2,704 bytes, is what an index entry holds. The key is part of each entry, and as long as this at most.
const longestIndexedText = 1024;

export function indexableText(text: string, path: string): string {
  const bytes = text.length * 3 <= longestIndexedText ? 0 : Buffer.byteLength(text);
  if (bytes <= longestIndexedText) return text;
  throw invalidRow(
    `column '${path}' has an index and holds ${bytes} bytes; an indexed text holds at most ${longestIndexedText}.`,
    ' Shorten it in evolve, or leave out the index.',
  );
}
