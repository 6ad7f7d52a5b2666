import { invalidRow, unstorable, wrongType } from './invalid-row.ts';

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

export function checkJson(value: unknown, path: string): unknown {
  const text = jsonText(value);
  if (text === undefined || text === 'null') throw wrongType(path, 'a JSON value', value);
  if (/(^|[^\\])(\\\\)*\\u0000/.test(text)) throw unstorable(path);
  return canonicalJson(JSON.parse(text));
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined; // a bigint, or a circle
  }
}

/** As jsonb gives it back: keys by length, then by bytes. An `evolve` that lists keys must not see another order after a reload. */
function canonicalJson(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(canonicalJson);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, part]) => ({
    key: key.toWellFormed(),
    bytes: Buffer.from(key),
    part: canonicalJson(part),
  }));
  members.sort((a, b) => a.bytes.length - b.bytes.length || a.bytes.compare(b.bytes));
  return Object.fromEntries(members.map(({ key, part }) => [key, part]));
}
