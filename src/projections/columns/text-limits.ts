import type { Column, Columns } from './column.ts';
import { uniqueIndexes } from './unique-indexes.ts';
import { aroundValue, kindCodec } from './value-codec.ts';

// PostgreSQL's maximum size of a B-tree entry is about a third of a page, less the entry's header.
const longestEntry = 2704 - 16;
/** The maximum for any indexed text, even if it is alone in its index. */
const longestIndexedText = 1024;
/** A UUID as text, with room to spare: less than this is no useful limit for an id. */
const leastIndexedText = 64;

/** The number of characters (code points) of a long text in its index. Rows are ordered by them, and then by the key. */
export const longestPlace = 256;
// Four bytes are the most for a character in UTF-8.
const placeBytes = 4 * longestPlace + aroundValue;

/** Whether a column takes texts of any length. Keys and unique texts are compared as a whole, so they are limited. */
export function isLongText({ type, flags }: Pick<Column, 'type' | 'flags'>): boolean {
  return type.kind === 'text' && (flags.long || flags.search) === true && !flags.primaryKey && !flags.unique;
}

/** The part of a value that decides its row's place in an order. The same as SQL's `left`, which counts code points, too. */
export function placeOf(column: Column, value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= longestPlace || !isLongText(column)) return value;
  return Array.from(value.slice(0, 2 * longestPlace))
    .slice(0, longestPlace)
    .join('');
}

/**
 * The maximum of bytes for each indexed text. The limits keep index entries within PostgreSQL's maximum. A text holds at most 1,024 bytes,
 * and fewer if several texts share an entry: every index of the table contains the key columns. Indexes for parts of texts, for long texts
 * and for JSON store no whole values.
 */
export function textLimits(columns: Columns, keyColumns: readonly string[]): Readonly<Record<string, number>> {
  const limits: Record<string, number> = {};
  for (const { texts, bytes } of indexesOf(columns, keyColumns)) {
    const each = Math.floor((longestEntry - bytes) / Math.max(1, texts.length)) - aroundValue;
    for (const name of texts) limits[name] = Math.min(limits[name] ?? longestIndexedText, each);
  }
  return limits;
}

/** The columns of the first index whose entries could be too large for PostgreSQL, whatever its texts are. */
export function oversizedIndex(columns: Columns, keyColumns: readonly string[]): readonly string[] | undefined {
  const oversized = indexesOf(columns, keyColumns).find(
    ({ texts, bytes }) => bytes + texts.length * (leastIndexedText + aroundValue) > longestEntry,
  );
  return oversized?.names;
}

interface IndexEntry {
  readonly names: readonly string[];
  /** Those that are texts and are stored as a whole. */
  readonly texts: readonly string[];
  /** The maximum of bytes for all others. */
  readonly bytes: number;
}

function indexesOf(columns: Columns, keyColumns: readonly string[]): readonly IndexEntry[] {
  const entry = (names: readonly string[], long?: string): IndexEntry => ({
    names,
    texts: names.filter((name) => name !== long && columns[name]?.type.kind === 'text'),
    bytes: names.reduce(
      (sum, name) => sum + (name === long ? placeBytes : kindCodec(columns[name] as Column).indexBytes), // names of columns
      0,
    ),
  });
  const sorted = Object.keys(columns).filter((name) => columns[name]?.flags.index && !columns[name]?.flags.unique);
  return [
    entry(keyColumns),
    ...sorted.map((name) =>
      entry([...new Set([name, ...keyColumns])], isLongText(columns[name] as Column) ? name : undefined),
    ),
    ...uniqueIndexes(columns, keyColumns).map((names) => entry(names)),
  ];
}
