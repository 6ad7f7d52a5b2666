import { invalidRow, unstorable } from './invalid-row.ts';

export function storableText(text: string, path: string): string {
  if (text.includes('\u0000')) throw unstorable(path);
  return text.toWellFormed(); // PostgreSQL would return a lone surrogate as U+FFFD
}

/** Checks a text that is stored in an index, see `textLimits`. */
export function indexableText(text: string, path: string, most: number): string {
  const bytes = text.length * 3 <= most ? 0 : Buffer.byteLength(text);
  if (bytes <= most) return text;
  const problem = `column '${path}' has an index and holds ${bytes} bytes; an indexed text holds at most ${most}.`;
  const fields = { column: path, bytes, maxBytes: most };
  throw invalidRow(
    problem,
    ' Shorten it in evolve. A column that is neither a key nor unique takes any length with .index({ long: true }).',
    problem,
    fields,
  );
}
