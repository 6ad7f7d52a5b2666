import type { Column, Columns } from './column.ts';
import { uniqueIndexes } from './unique-indexes.ts';
import { aroundValue, kindCodec } from './value-codec.ts';

// PostgreSQL's maximum size of a B-tree entry is about a third of a page, less the entry's header.
const longestEntry = 2704 - 16;
/** The maximum for any indexed text, even if it is alone in its index. */
const longestIndexedText = 1024;
/** A UUID as text, with room to spare: less than this is no useful limit for an id. */
const leastIndexedText = 64;

/**
 * The maximum of bytes for each indexed text. The limits keep index entries within PostgreSQL's maximum. A text holds at most 1,024 bytes,
 * and fewer if several texts share an entry: every index of the table contains the key columns. Indexes for parts of texts and for JSON
 * store no whole values.
 */
export function textLimits(columns: Columns, keyColumns: readonly string[]): Readonly<Record<string, number>> {
  const limits: Record<string, number> = {};
  for (const names of indexesOf(columns, keyColumns)) {
    const texts = names.filter((name) => columns[name]?.type.kind === 'text');
    const each = Math.floor((longestEntry - fixedBytes(columns, names)) / Math.max(1, texts.length)) - aroundValue;
    for (const name of texts) limits[name] = Math.min(limits[name] ?? longestIndexedText, each);
  }
  return limits;
}

/** The columns of the first index whose entries could be too large for PostgreSQL, whatever its texts are. */
export function oversizedIndex(columns: Columns, keyColumns: readonly string[]): readonly string[] | undefined {
  return indexesOf(columns, keyColumns).find((names) => {
    const texts = names.filter((name) => columns[name]?.type.kind === 'text');
    return fixedBytes(columns, names) + texts.length * (leastIndexedText + aroundValue) > longestEntry;
  });
}

function indexesOf(columns: Columns, keyColumns: readonly string[]): readonly (readonly string[])[] {
  const sorted = Object.keys(columns).filter((name) => columns[name]?.flags.index && !columns[name]?.flags.unique);
  return [
    keyColumns,
    ...sorted.map((name) => [...new Set([name, ...keyColumns])]),
    ...uniqueIndexes(columns, keyColumns),
  ];
}

/** The maximum of bytes for all values of an index but its texts. */
function fixedBytes(columns: Columns, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + kindCodec(columns[name] as Column).indexBytes, 0); // names of columns
}
