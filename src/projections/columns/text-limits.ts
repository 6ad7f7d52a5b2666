import type { Column, Columns } from './column.ts';
import { uniqueIndexes } from './unique-indexes.ts';

// PostgreSQL's maximum size of a B-tree entry is about a third of a page, less the entry's header.
const longestEntry = 2704 - 16;
// The length header and the padding before the next value.
const aroundValue = 8;
/** The maximum for any indexed text, even if it is alone in its index. */
const longestIndexedText = 1024;

/**
 * The maximum of bytes for each indexed text. The limits keep index entries within PostgreSQL's maximum. A text holds at most 1,024 bytes,
 * and fewer if several texts share an entry: every index of the table contains the key columns. Indexes for parts of texts and for JSON
 * store no whole values.
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

/** The maximum size of a value that is not text. */
function sizeOf(column: Column | undefined): number {
  switch (column?.type.kind) {
    case 'enum':
      return Math.max(...column.type.values.map((value) => value.length)) + aroundValue;
    case 'decimal':
      // Two bytes per four digits, on both sides of the point.
      return Math.ceil(column.type.precision / 2) + 2 * aroundValue;
    case 'integer':
    case 'bigint':
    case 'boolean':
    case 'uuid':
    case 'date':
    case 'timestamptz':
      return 16 + aroundValue;
    default:
      return 0; // texts, and columns with another kind of index
  }
}
