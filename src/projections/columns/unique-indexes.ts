import type { Columns } from './column.ts';

/** The columns of each unique index besides the key: the unique column, and its `within` column if it has one. */
export function uniqueIndexes(columns: Columns, keyColumns: readonly string[]): readonly (readonly string[])[] {
  return Object.entries(columns)
    .filter(([name, { flags }]) => flags.unique && name !== keyColumns[0])
    .map(([name, { flags }]) => (flags.within === undefined ? [name] : [name, flags.within]));
}
