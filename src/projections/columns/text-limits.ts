import type { Column, Columns } from './column.ts';
import { uniqueIndexes } from './unique-indexes.ts';

// A third of a page is what an entry of an index holds, with its header.
const longestEntry = 2704 - 16;
// A length and what aligns the next value.
const aroundValue = 8;
/** No index takes a longer text, whatever else is in it. */
const longestIndexedText = 1024;

/**
 * How many bytes the texts hold that are in an index, so that no entry is longer than PostgreSQL takes. A text is 1,024 bytes at most, and less
 * where several share an entry: the key's columns are in each index of the table. Indexes for parts of texts and for JSON hold no whole values.
 */
export function textLimits(columns: Columns, keyColumns: readonly string[]): Readonly<Record<string, number>> {
  const sorted = Object.keys(columns).filter((name) => columns[name]?.flags.index && !columns[name]?.flags.unique);
  const indexes = [
    keyColumns,
    ...sorted.map((name) => [...new Set([name, ...keyColumns])]),
    ...uniqueIndexes(columns, keyColumns),
  ];
  const limits: Record<string, number> = {};
  for (const names of indexes) {
    const texts = names.filter((name) => columns[name]?.type.kind === 'text');
    const others = names.reduce((sum, name) => sum + sizeOf(columns[name]), 0);
    const each = Math.floor((longestEntry - others) / Math.max(1, texts.length)) - aroundValue;
    for (const name of texts) limits[name] = Math.min(limits[name] ?? longestIndexedText, each);
  }
  return limits;
}

/** What a value that is no text takes at most. */
function sizeOf(column: Column | undefined): number {
  switch (column?.type.kind) {
    case 'enum':
      return Math.max(...column.type.values.map((value) => value.length)) + aroundValue;
    case 'decimal':
      // Two bytes for four digits, on both sides of the point.
      return Math.ceil(column.type.precision / 2) + 2 * aroundValue;
    case 'integer':
    case 'bigint':
    case 'boolean':
    case 'uuid':
    case 'date':
    case 'timestamptz':
      return 16 + aroundValue;
    default:
      return 0; // texts, and what has an index of another kind
  }
}
